package slurm_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/lab/testbed/live/slurm"
	"pinwheel/lab/testbed/live/stack"
)

// cluster is that of all tests, if there is one.
var cluster *slurm.Cluster

func TestMain(m *testing.M) {
	if beTask() {
		return
	}
	os.Exit(slurm.Isolate(func() int {
		if why := slurm.Missing(); why != "" && os.Getenv(slurm.Variable) != "" {
			fmt.Println("skipped: " + why)
			return 0
		} else if why != "" {
			return m.Run() // the tests skip themselves
		}
		var err error
		if cluster, err = slurm.Start(); err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Printf("processors: %s\nsrun --mpi: %s\n", cluster.Confinement, strings.Join(cluster.MPI, ", "))
		code := m.Run()
		if code != 0 {
			fmt.Println(cluster.Log())
		}
		if err := cluster.Stop(); err != nil {
			fmt.Println(err)
			return 1
		}
		return code
	}))
}

// root is that of the repository.
const root = "../../../.."

// bench is where jobs of one MPI stack run: a directory with the program "app", on the cluster.
type bench struct {
	t       *testing.T
	dir     string
	program string // to which app is a link
	environ []string
}

// halo exchanges buffers of 1 MiB for a tenth of a second, or with arguments for as long as they say.
const halo = "halo"

// newBench skips the test if something is missing.
func newBench(t *testing.T, s stack.Stack, source string) *bench {
	t.Helper()
	if cluster == nil {
		t.Skip(slurm.Missing())
	}
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	device, err := stack.OpenDevice(filepath.Join(root, "out/softverbs"))
	if err != nil {
		t.Skip(err)
	}
	if why := s.Missing(device); why != "" {
		t.Skip(why)
	}
	kind := cluster.MPIFor(s)
	if kind == "" {
		t.Skipf("srun has no --mpi for %s, only %q", s.Name, cluster.MPI)
	}
	b := &bench{t: t, dir: t.TempDir()}
	b.program = filepath.Join(slurm.Scratch, "programs", s.MPI, source)
	if err := s.Compile(b.program, filepath.Join(root, "lab/testbed/programs", source+".c")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(b.program, filepath.Join(b.dir, "app")); err != nil {
		t.Fatal(err)
	}
	// The device's libraries go to the tasks of one MPI library by --export, and those of the other have them from
	// the environment of srun: people do both.
	export := "ALL"
	for _, entry := range s.Alone(device) {
		if s.MPI == "openmpi" && strings.HasPrefix(entry, "LD_") {
			export += "," + entry
		} else {
			b.environ = append(b.environ, entry)
		}
	}
	b.environ = slices.Concat(stack.Environ(), b.environ, []string{
		cluster.Environ(),
		"PATH=" + filepath.Join(repository, "bin") + ":" + os.Getenv("PATH"),
		"SOFTVERBS_STATS=" + b.path("softverbs"),
		"UCX_RNDV_THRESH=16384", "PINWHEEL_WATCH_WAIT=y",
		"SLURM_EXPORT_ENV=" + export,
		"SLURM_MPI_TYPE=" + kind,
		"SLURM_OVERCOMMIT=1", "SBATCH_OVERCOMMIT=1", // there may be fewer processors than ranks
	})
	t.Cleanup(func() { slurmSays(t, "scancel", "--user=root") }) // what a test that failed has left
	t.Logf("%s: --mpi=%s", s.Name, kind)
	return b
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// job is a command of a shell that has ended.
type job struct {
	command string
	status  int
	output  string
	took    time.Duration // since it was waited for
}

// limit is for a job of a second on a machine that does much else.
const limit = time.Minute

// start starts a command of a shell, in the bench's directory.
func (b *bench) start(command string, environ ...string) (cmd *exec.Cmd, output string) {
	b.t.Helper()
	f, err := os.CreateTemp(b.dir, "output-")
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	cmd = exec.Command("sh", "-c", command)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.dir, slices.Concat(b.environ, environ), f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	return cmd, f.Name()
}

// wait waits for the end of what start has started. After the limit it fails the test.
func (b *bench) wait(cmd *exec.Cmd, output string, limit time.Duration) job {
	b.t.Helper()
	begin := time.Now()
	late := time.AfterFunc(limit, func() { _ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL) })
	err := cmd.Wait()
	text, readErr := os.ReadFile(output)
	if !late.Stop() {
		b.t.Fatalf("%q is not over after %v\n%s", cmd.Args, limit, text)
	}
	if readErr != nil || err != nil && !errors.As(err, new(*exec.ExitError)) {
		b.t.Fatalf("%q: %v, %v", cmd.Args, err, readErr)
	}
	return job{cmd.Args[len(cmd.Args)-1], cmd.ProcessState.ExitCode(), string(text), time.Since(begin)}
}

// run is start and wait.
func (b *bench) run(command string, environ ...string) job {
	b.t.Helper()
	cmd, output := b.start(command, environ...)
	return b.wait(cmd, output, limit)
}

// moved fails the test unless so many ranks, each in one job with all others, have moved large buffers
// over the device, found them right, and had Pinwheel.
func (b *bench) moved(ranks int, output string) {
	b.t.Helper()
	if want := fmt.Sprintf("%d ranks, data right", ranks); strings.Count(output, want) != 1 {
		b.t.Errorf("not once %q", want)
	}
	for _, bad := range []string{"running without Pinwheel", "pinwheel: "} {
		if strings.Contains(output, bad) {
			b.t.Errorf("%q", bad)
		}
	}
	uses, err := stack.ReadUses(b.path("softverbs"))
	if err != nil {
		b.t.Error(err)
	}
	n := 0
	for _, u := range uses {
		if u.Large > 0 && u.Regions > 0 {
			n++
		}
	}
	if n != ranks {
		b.t.Errorf("%d processes of %d moved large buffers over the device, not %d", n, len(uses), ranks)
	}
	if b.t.Failed() {
		b.t.Log(output)
	}
}

// slurmSays is what a command of Slurm prints.
func slurmSays(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := cluster.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// lastJob is the number of the last job that was submitted.
func lastJob(t *testing.T) string {
	t.Helper()
	all := strings.Fields(slurmSays(t, "squeue", "--noheader", "--states=all", "--sort=-i", "--format=%A"))
	if len(all) == 0 {
		t.Fatal("squeue knows of no job")
	}
	return all[0]
}
