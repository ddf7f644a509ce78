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

// The runtime of AddressSanitizer ends a process that has loaded anything before it.
func TestAddressSanitizerIsLoadedFirst(t *testing.T) {
	site := launchtest.New(t)
	asan := filepath.Join(filepath.Dir(site.Library), "libasan.so.8")
	bin := t.TempDir() // with what a machine may lack: they are not started
	for _, name := range []string{"numactl", "perf"} {
		if err := os.Symlink("/bin/true", filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", os.Getenv("PATH")+":"+bin)
	first, alone := asan+":"+site.Library, site.Library
	for command, want := range map[string]string{
		"mpirun -n 2 checked":                                   "LD_PRELOAD=" + first,
		"mpirun -n 2 env A=1 numactl -N 0 checked bug":          "LD_PRELOAD=" + first,
		"mpirun -n 2 nohup checked":                             "LD_PRELOAD=" + first,
		"mpirun -n 1 checked : -n 1 checked b":                  "LD_PRELOAD=" + first,
		"mpirun -x LD_PRELOAD=tool.so checked":                  "LD_PRELOAD=" + first + ":tool.so",
		"mpirun -x LD_PRELOAD=/other/libasan.so.8:tool checked": "LD_PRELOAD=" + first + ":tool",
		"mpiexec.hydra -genv LD_PRELOAD tool.so -n 2 checked":   first + ":tool.so",
		"srun timeout 60 checked":                               "LD_PRELOAD=" + first,
		"mpirun -n 2 env A=checked app":                         "LD_PRELOAD=" + alone,
		"mpirun -n 2 perf stat app":                             "LD_PRELOAD=" + alone,
	} {
		p := makePlan(t, site, command)
		if !slices.ContainsFunc(p.Args, func(a string) bool {
			return slices.Contains(strings.Split(strings.TrimPrefix(a, "--export=ALL,"), ","), want)
		}) || p.Plain != "" {
			t.Errorf("%s: %q, plain %q; want %s", command, p.Args, p.Plain, want)
		}
	}
	for _, command := range []string{"checked", "nice -n 5 checked"} {
		if p := makePlan(t, site, command); !slices.Contains(p.Environ, "LD_PRELOAD="+first) {
			t.Errorf("%s: plain %q, %q", command, p.Plain, p.Environ)
		}
	}
	p := makePlan(t, site, "mpirun app", func(r *launch.Request) { r.Tools = []string{"/m.so"} })
	if !slices.Contains(p.Args, "LD_PRELOAD=/m.so:"+alone) {
		t.Errorf("tools: %q", p.Args)
	}
	for command, says := range map[string]string{
		"mpirun perf stat -d checked":        `put "pinwheel run --" right before checked`,
		"perf stat checked":                  `put "pinwheel run --" right before checked`,
		"mpirun -n 1 app : -n 1 checked":     "only some of the programs are built with AddressSanitizer",
		"mpiexec.hydra -n 1 checked : app 1": "only some of the programs are built with AddressSanitizer",
	} {
		if p := makePlan(t, site, command); !strings.Contains(p.Plain, says) || strings.Join(p.Args, " ") != command {
			t.Errorf("%s: %q, plain %q", command, p.Args, p.Plain)
		}
	}
}

func TestWrappersAreNotTakenForPrograms(t *testing.T) {
	site := launchtest.New(t)
	for _, command := range []string{"mpirun nohup app", "srun ionice -c 3 app", "setsid app"} {
		if p := makePlan(t, site, command); p.Plain != "" {
			t.Errorf("%s: %q", command, p.Plain)
		}
	}
}
