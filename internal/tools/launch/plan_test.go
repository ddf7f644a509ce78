package launch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/tools/launch"
	"pinwheel/internal/tools/launch/launchtest"
)

func TestMain(m *testing.M) { os.Exit(launchtest.Main(m)) }

// makePlan makes a plan for a command line without quotes.
func makePlan(t *testing.T, site *launchtest.Site, command string, change ...func(*launch.Request)) launch.Plan {
	t.Helper()
	r := launch.Request{Command: strings.Fields(command), Environ: os.Environ(), Library: site.Library,
		Settings: []string{"PINWHEEL_POLICY=paper"}}
	for _, c := range change {
		c(&r)
	}
	p, err := launch.Make(r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const (
	openMPIVars = "-x PINWHEEL_POLICY -x FI_MR_CACHE_MAX_COUNT -x FI_EFA_MR_MAX_CACHED_COUNT -x UCX_RCACHE_ENABLE -x UCX_IB_REG_METHODS" +
		" -x UCX_WARN_UNUSED_ENV_VARS -x MV2_USE_LAZY_MEM_UNREGISTER -x UCX_MEM_EVENTS" +
		" -x UCX_IB_MEM_REG_OVERHEAD -x UCX_IB_MEM_REG_GROWTH -x UCX_ZCOPY_THRESH -x LIBPINWHEEL_CACHES_OFF"
	hydraVars = "-genv PINWHEEL_POLICY paper -genv FI_MR_CACHE_MAX_COUNT 0 -genv FI_EFA_MR_MAX_CACHED_COUNT 1 -genv UCX_RCACHE_ENABLE n" +
		" -genv UCX_IB_REG_METHODS direct -genv UCX_WARN_UNUSED_ENV_VARS n -genv OMPI_MCA_mpi_leave_pinned 0" +
		" -genv MV2_USE_LAZY_MEM_UNREGISTER 0 -genv UCX_MEM_EVENTS n" +
		" -genv UCX_IB_MEM_REG_OVERHEAD 180ns -genv UCX_IB_MEM_REG_GROWTH 0ns -genv UCX_ZCOPY_THRESH 16384" +
		" -genv LIBPINWHEEL_CACHES_OFF FI_MR_CACHE_MAX_COUNT=0:FI_EFA_MR_MAX_CACHED_COUNT=1:UCX_RCACHE_ENABLE=n:UCX_IB_REG_METHODS=direct" +
		":UCX_WARN_UNUSED_ENV_VARS=n:OMPI_MCA_mpi_leave_pinned=0:MV2_USE_LAZY_MEM_UNREGISTER=0:UCX_MEM_EVENTS=n" +
		":UCX_IB_MEM_REG_OVERHEAD=180ns:UCX_IB_MEM_REG_GROWTH=0ns:UCX_ZCOPY_THRESH=16384"
	slurmVars = "PINWHEEL_POLICY,FI_MR_CACHE_MAX_COUNT,FI_EFA_MR_MAX_CACHED_COUNT,UCX_RCACHE_ENABLE,UCX_IB_REG_METHODS," +
		"UCX_WARN_UNUSED_ENV_VARS,OMPI_MCA_mpi_leave_pinned,MV2_USE_LAZY_MEM_UNREGISTER,UCX_MEM_EVENTS," +
		"UCX_IB_MEM_REG_OVERHEAD,UCX_IB_MEM_REG_GROWTH,UCX_ZCOPY_THRESH,LIBPINWHEEL_CACHES_OFF"
)

func TestLauncherIsToldToPreloadTheRanksOnly(t *testing.T) {
	site := launchtest.New(t)
	for _, c := range []struct{ command, want string }{
		{"mpirun -n 4 app", "mpirun -x LD_PRELOAD=<lib> <vars> -n 4 app"},
		{"mpirun -np 2 --mca btl self,tcp -wdir / app -x LD_PRELOAD=no",
			"mpirun -x LD_PRELOAD=<lib> <vars> -np 2 --mca btl self,tcp -wdir / app -x LD_PRELOAD=no"},
		{"mpirun -n 1 app a : -n 1 app b",
			"mpirun -x LD_PRELOAD=<lib> <vars> -n 1 app a : -x LD_PRELOAD=<lib> <vars> -n 1 app b"},
		{"mpirun -x LD_PRELOAD=tool.so -n 1 app", "mpirun <vars> -x LD_PRELOAD=<lib>:tool.so -n 1 app"},
		{"mpirun -x LD_PRELOAD=/usr/lib/libasan.so.8:tool.so app",
			"mpirun <vars> -x LD_PRELOAD=/usr/lib/libasan.so.8:<lib>:tool.so app"},
		{"mpirun -x LD_PRELOAD=/old/libpinwheel.so app", "mpirun <vars> -x LD_PRELOAD=<lib> app"},
		{"mpirun -x FI_MR_CACHE_MAX_COUNT=9 app",
			"mpirun -x LD_PRELOAD=<lib> " + strings.Replace(openMPIVars, "-x FI_MR_CACHE_MAX_COUNT ", "", 1) +
				" -x FI_MR_CACHE_MAX_COUNT=9 app"},

		{"mpiexec.hydra -n 2 app", "mpiexec.hydra -genv LD_PRELOAD <lib> <vars> -n 2 app"},
		{"mpiexec.hydra -n 1 app : -n 1 -env LD_PRELOAD tool.so app",
			"mpiexec.hydra -genv LD_PRELOAD <lib> <vars> -n 1 app : -n 1 -env LD_PRELOAD <lib>:tool.so app"},
		{"mpiexec.hydra -genv LD_PRELOAD tool.so -n 1 app", "mpiexec.hydra <vars> -genv LD_PRELOAD <lib>:tool.so -n 1 app"},

		{"srun -n 4 app", "srun --export=ALL,LD_PRELOAD=<lib>,<vars> -n 4 app"},
		{"srun -n4 --export=ALL,A=1 app", "srun -n4 --export=ALL,A=1,LD_PRELOAD=<lib>,<vars> app"},
		{"srun --export A,LD_PRELOAD=tool.so app", "srun --export=A,LD_PRELOAD=<lib>:tool.so,<vars> app"},
		{"srun --export=NONE app", "srun --export=LD_PRELOAD=<lib>,<vars> app"},
		{"srun --export=A,none,B app", "srun --export=A,LD_PRELOAD=<lib>,<vars> app"},
		{"srun -n 1 app : -n 1 --export=A app",
			"srun --export=ALL,LD_PRELOAD=<lib>,<vars> -n 1 app : --export=A,LD_PRELOAD=<lib>,<vars> -n 1 app"},
	} {
		p := makePlan(t, site, c.command)
		vars := map[string]string{"mpirun": openMPIVars, "srun": slurmVars}[strings.Fields(c.command)[0]]
		if vars == "" {
			vars = hydraVars
		}
		want := strings.NewReplacer("<lib>", site.Library, "<vars>", vars).Replace(c.want)
		got := strings.Join(p.Args, " ")
		if strings.HasPrefix(c.command, "srun") { // where among the options does not matter
			got, want = sorted(got), sorted(want)
		}
		if got != want || p.Plain != "" {
			t.Errorf("%s\n got %s\nwant %s (plain: %q)", c.command, got, want, p.Plain)
		}
		if slices.ContainsFunc(p.Environ, func(e string) bool { return strings.HasPrefix(e, "LD_PRELOAD=") }) {
			t.Errorf("%s: the launcher itself is preloaded", c.command)
		}
	}
}

func sorted(s string) string {
	words := strings.Fields(s)
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestEnvironmentOfTheUserIsKept(t *testing.T) {
	site := launchtest.New(t)
	t.Setenv("LD_PRELOAD", "tool.so other.so")
	t.Setenv("FI_MR_CACHE_MAX_COUNT", "100")
	t.Setenv("UCX_RCACHE_ENABLE", "n")
	t.Setenv("PINWHEEL_POLICY", "lru")
	t.Setenv("PINWHEEL_STATS", "y")
	p := makePlan(t, site, "mpirun app")
	args := strings.Join(p.Args, " ")
	if !strings.Contains(args, "LD_PRELOAD="+site.Library+":tool.so:other.so") || strings.Contains(args, "FI_MR") ||
		!strings.Contains(args, "-x PINWHEEL_STATS") {
		t.Errorf("arguments %q", args)
	}
	for entry, want := range map[string]bool{
		"LD_PRELOAD=tool.so other.so": true, "FI_MR_CACHE_MAX_COUNT=100": true, "PINWHEEL_POLICY=paper": true,
		"PINWHEEL_POLICY=lru":         false,
		"OMPI_MCA_mpi_leave_pinned=0": true,
	} {
		if slices.Contains(p.Environ, entry) != want {
			t.Errorf("%s in the launcher's environment: %v, want %v", entry, !want, want)
		}
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "FI_MR_CACHE_MAX_COUNT=100 is kept") {
		t.Errorf("notes %q", p.Notes)
	}
	kept := makePlan(t, site, "mpirun app", func(r *launch.Request) { r.KeepCaches = true })
	if s := strings.Join(append(kept.Args, kept.Environ...), " "); strings.Contains(s, "UCX_IB_REG_METHODS") ||
		len(kept.Notes) > 0 {
		t.Errorf("with KeepCaches: %s, %q", s, kept.Notes)
	}
}

// With ALL, what srun has in its own environment goes before what --export says.
func TestSrunExportsWhatItWouldHaveExported(t *testing.T) {
	site := launchtest.New(t)
	t.Setenv("LD_PRELOAD", "tool.so")
	for _, c := range []struct{ slurm, srun, command, want string }{
		{"", "", "srun app", "ALL,LD_PRELOAD=<lib>:tool.so"},
		{"", "", "srun --export=all,LD_PRELOAD=other.so app", "all,LD_PRELOAD=<lib>:tool.so"},
		{"", "", "srun --export=LD_PRELOAD=other.so app", "LD_PRELOAD=<lib>:other.so"},
		{"", "", "srun --export=LD_PRELOAD app", "LD_PRELOAD=<lib>:tool.so"},
		{"NONE", "", "srun app", "LD_PRELOAD=<lib>"},
		{"NONE", "A", "srun app", "A,LD_PRELOAD=<lib>"},
		{"NONE", "A", "srun --export=B app", "B,LD_PRELOAD=<lib>"},
	} {
		t.Setenv("SLURM_EXPORT_ENV", c.slurm)
		t.Setenv("SRUN_EXPORT_ENV", c.srun)
		p := makePlan(t, site, c.command, func(r *launch.Request) { r.KeepCaches = true })
		want := "--export=" + strings.ReplaceAll(c.want, "<lib>", site.Library) + ",PINWHEEL_POLICY"
		if !slices.Contains(p.Args, want) {
			t.Errorf("%+v:\n got %q\nwant %s", c, p.Args, want)
		}
		if value, set := launch.Getenv(p.Environ, "LD_PRELOAD"); set {
			t.Errorf("%+v: srun has LD_PRELOAD=%s", c, value)
		}
	}
}

func TestRunsToCompareWithLoadToolsOnly(t *testing.T) {
	site := launchtest.New(t)
	for command, says := range map[string]string{
		"mpirun -n 2 app": "-x LD_PRELOAD=/m.so", "mpiexec.hydra -n 2 app": "-genv LD_PRELOAD /m.so",
		"srun app": "LD_PRELOAD=/m.so",
	} {
		for _, caches := range []bool{true, false} {
			p := makePlan(t, site, command, func(r *launch.Request) {
				r.NoPinwheel, r.KeepCaches, r.Tools, r.Variables = true, caches, []string{"/m.so"}, []string{"METER=/dir"}
			})
			args := strings.Join(p.Args, " ")
			if !strings.Contains(args, says) || strings.Contains(args, "libpinwheel") ||
				!strings.Contains(args, "METER") || p.Plain != "" {
				t.Errorf("%s: %q, plain %q", command, args, p.Plain)
			}
			if off := slices.Contains(p.Environ, "UCX_IB_REG_METHODS=direct"); off == caches {
				t.Errorf("%s with caches %v: they are off: %v", command, caches, off)
			}
		}
		with := makePlan(t, site, command, func(r *launch.Request) { r.Tools = []string{"/m.so"} })
		if args := strings.Join(with.Args, " "); !strings.Contains(args, says+":"+site.Library) {
			t.Errorf("%s: %q", command, args)
		}
	}
}

func TestLibraryIsTakenOutOfTheLaunchersEnvironment(t *testing.T) {
	site := launchtest.New(t)
	t.Setenv("LD_PRELOAD", "/elsewhere/libpinwheel.so:tool.so")
	p := makePlan(t, site, "mpirun app")
	if !slices.Contains(p.Environ, "LD_PRELOAD=tool.so") ||
		!slices.Contains(p.Args, "LD_PRELOAD="+site.Library+":tool.so") {
		t.Errorf("arguments %q", p.Args)
	}
	if len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "into mpirun itself") {
		t.Errorf("notes %q", p.Notes)
	}
}

func TestProgramWithoutLauncherIsPreloadedItself(t *testing.T) {
	site := launchtest.New(t)
	p := makePlan(t, site, "app 1 2")
	if !slices.Equal(p.Args, []string{"app", "1", "2"}) ||
		!slices.Contains(p.Environ, "LD_PRELOAD="+site.Library) || p.Plain != "" {
		t.Errorf("%q, plain %q", p.Args, p.Plain)
	}
}

func TestProgramMayBeFoundInTheWorkingDirectory(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir(site.Bin)
	t.Setenv("PATH", ".:/usr/bin:/bin")
	if p := makePlan(t, site, "app"); p.Path != "./app" || p.Plain != "" {
		t.Errorf("path %q, plain %q", p.Path, p.Plain)
	}
	if p := makePlan(t, site, "mpirun -n 1 static"); !strings.Contains(p.Plain, "statically") {
		t.Errorf("plain %q", p.Plain)
	}
}

// Whose MPI library a program of the standard ABI gets doesn't matter, nor by whose launcher.
func TestProgramOfTheStandardABIIsManaged(t *testing.T) {
	site := launchtest.New(t)
	for _, command := range []string{"mpirun -n 2 standard", "mpiexec.hydra -n 2 standard", "standard"} {
		if p := makePlan(t, site, command); p.Plain != "" {
			t.Errorf("%s: plain: %s", command, p.Plain)
		}
	}
}

func TestJobRunsPlainWhereTheLibraryCannotWork(t *testing.T) {
	site := launchtest.New(t)
	for _, c := range []struct{ command, says string }{
		{"static", "static is statically linked"},
		{"mpirun -n 2 static", "static is statically linked"},
		{"mpirun -n 1 app : -n 1 static", "static is statically linked"},
		{"srun -n 2 script a", "script is a shell or a script for one"},
		{"bash -c true", "bash is a shell"},
		{"nompi", "nompi is linked with no MPI library"},
		{"mpiexec.hydra -n 1 nompi", "nompi is linked with no MPI library"},
		{"mpirun other", "other is linked with libmpi.so.1, an MPI library that Pinwheel does not know"},
		{"aprun -n 2 app", "aprun is a launcher that is not known here; start every rank with Pinwheel instead: aprun ... " +
			"pinwheel run -- program"},
		{"mpiexec -n 2 app", "mpiexec is a launcher that is not known here"},
		{"mpirun --mca mca_base_env_list A=1 app", "-x or mca_base_env_list, not both"},
	} {
		p := makePlan(t, site, c.command)
		if !strings.Contains(p.Plain, c.says) || strings.Contains(p.Plain, "\n") {
			t.Errorf("%s: %q, want a line that says %q", c.command, p.Plain, c.says)
		}
		if !slices.Equal(p.Args, strings.Fields(c.command)) || !slices.Equal(p.Environ, os.Environ()) {
			t.Errorf("%s: not as it was typed: %q", c.command, p.Args)
		}
	}
}

func TestJobRunsPlainWithoutALibraryThatFits(t *testing.T) {
	site := launchtest.New(t)
	foreign := foreignCopy(t, site.Library)
	half := foreignCopy(t, site.Library)
	if err := os.Remove(filepath.Join(filepath.Dir(half), launch.GoSide)); err != nil {
		t.Fatal(err)
	}
	spaced := site.Path("a directory") + "/libpinwheel.so"
	text := site.Path("text")
	if err := os.WriteFile(text, []byte("no library\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for library, says := range map[string]string{
		"/nowhere/libpinwheel.so": "/nowhere/libpinwheel.so does not exist",
		text:                      "is no shared library",
		spaced:                    "a colon or a space",
		foreign:                   "app is for x86_64",
		half:                      launch.GoSide + ", which libpinwheel.so needs beside it, is missing",
		"":                        "libpinwheel.so is not installed beside",
	} {
		p := makePlan(t, site, "mpirun app", func(r *launch.Request) { r.Library = library })
		if !strings.Contains(p.Plain, says) {
			t.Errorf("library %q: %q, want a line that says %q", library, p.Plain, says)
		}
	}
}

// foreignCopy is the library with another machine in its ELF header (e_machine, elf(5)).
func foreignCopy(t *testing.T, library string) string {
	t.Helper()
	data, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	data[18], data[19] = 0xf3, 0 // EM_RISCV
	dir := t.TempDir()
	path := filepath.Join(dir, "libpinwheel.so")
	for _, err := range []error{os.WriteFile(path, data, 0o777),
		os.WriteFile(filepath.Join(dir, launch.GoSide), nil, 0o777)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestWhatIsNotKnownIsNotJudged(t *testing.T) {
	site := launchtest.New(t)
	for _, command := range []string{"mpirun -n 1 elsewhere", "mpirun --future-option 4 app", "mpirun env A=1 app",
		"srun --multi-prog plan_test.go", "mpirun"} {
		if p := makePlan(t, site, command); p.Plain != "" {
			t.Errorf("%s: %q", command, p.Plain)
		}
	}
	if _, err := launch.Make(launch.Request{Command: []string{"nowhere-to-be-found"}, Environ: os.Environ()}); err == nil {
		t.Error("a command that does not exist makes a plan")
	}
}

func TestLauncherOfAnotherMPIIsPointedOut(t *testing.T) {
	site := launchtest.New(t)
	p := makePlan(t, site, "mpiexec.hydra -n 2 app")
	if p.Plain != "" || len(p.Notes) != 1 ||
		!strings.Contains(p.Notes[0], "app is linked with Open MPI, but mpiexec.hydra is the launcher of MPICH") {
		t.Errorf("plain %q, notes %q", p.Plain, p.Notes)
	}
	if p := makePlan(t, site, "srun -n 2 app"); len(p.Notes) > 0 {
		t.Errorf("srun starts any MPI: %q", p.Notes)
	}
}

func TestWrappersBeforeALauncherStay(t *testing.T) {
	site := launchtest.New(t)
	bin := t.TempDir() // with what a machine may lack: they are not started
	for _, name := range []string{"numactl", "chrt"} {
		if err := os.Symlink("/bin/true", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+bin)
	launched := strings.Join(makePlan(t, site, "mpirun -n 2 app").Args, " ")
	for _, wrappers := range []string{
		"env A=1", "env -u B A=1 C=", "nice -n 5", "nice -5", "setsid", "nohup", "timeout 60", "timeout -k 5 --signal=INT 1m",
		"taskset -c 0-1", "numactl --membind 0 -N 0",
		"env A=1 timeout 60 nice", "chrt -f 10",
	} {
		p := makePlan(t, site, wrappers+" mpirun -n 2 app")
		if got, want := strings.Join(p.Args, " "), wrappers+" "+launched; got != want || p.Plain != "" {
			t.Errorf("%s\n got %s\nwant %s (plain: %q)", wrappers, got, want, p.Plain)
		}
		if filepath.Base(p.Path) != strings.Fields(wrappers)[0] {
			t.Errorf("%s: the program is %s", wrappers, p.Path)
		}
		if slices.ContainsFunc(p.Environ, func(e string) bool { return strings.HasPrefix(e, "LD_PRELOAD=") }) {
			t.Errorf("%s: the wrapper itself is preloaded", wrappers)
		}
		if got := launch.ProgramOf(strings.Fields(wrappers+" mpirun -n 2 app"), os.Environ()); got != "app" {
			t.Errorf("%s: the program is called %q", wrappers, got)
		}
	}
	if p := makePlan(t, site, "env -i A=1 mpirun app"); !strings.Contains(p.Plain, "drop its option -i") ||
		strings.Join(p.Args, " ") != "env -i A=1 mpirun app" {
		t.Errorf("%q, plain %q", p.Args, p.Plain)
	}
	if p := makePlan(t, site, "nice app"); p.Plain != "" || !slices.Contains(p.Environ, "LD_PRELOAD="+site.Library) {
		t.Errorf("without launcher: %q, plain %q", p.Args, p.Plain)
	}
}

func TestLaunchersStartRanks(t *testing.T) {
	launchtest.New(t)
	for command, want := range map[string]bool{
		"mpirun app": true, "nice -n 5 srun app": true, "aprun app": true, "app mpirun": false, "nowhere-to-be-found": false,
	} {
		if got := launch.StartsRanks(strings.Fields(command), os.Environ()); got != want {
			t.Errorf("%s: %v, want %v", command, got, want)
		}
	}
}

func TestProgramOfLooksBehindTheLauncher(t *testing.T) {
	launchtest.New(t)
	for command, want := range map[string]string{
		"mpirun -n 4 /opt/x/ft.B.4 in": "ft.B.4", "srun -N 2 app": "app", "app 1": "app", "mpirun": "mpirun",
	} {
		if got := launch.ProgramOf(strings.Fields(command), os.Environ()); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}
