package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/testwait"
	"pinwheel/lab/testbed/live/stack"
)

// plain is a step without Pinwheel, and forms are the ways to have it under Pinwheel: with each MPI library one that
// becomes the step and one that waits for its end. %s is for the arguments of the program.
const plain = "srun -n 2 ./app %s"

var forms = map[string][]string{
	"openmpi": {"pinwheel run -- srun -n 2 ./app %s", "srun -n 2 pinwheel run --report -- ./app %s"},
	"mpich":   {"pinwheel run --report -- srun -n 2 ./app %s", "srun -n 2 pinwheel run -- ./app %s"},
}

// ways are those of lab/testbed/programs/lifecycle.c, with what Slurm is to do: if one rank of two gets a
// signal, the other one waits for it.
var ways = map[string]string{"status": "SLURM_KILL_BAD_EXIT=0", "segv": "SLURM_KILL_BAD_EXIT=1"}

// The status is that without Pinwheel, however the ranks end.
func TestStatusIsThatOfTheStep(t *testing.T) {
	eachStack(t, func(t *testing.T, s stack.Stack) {
		b := newBench(t, s, "lifecycle")
		for way, kill := range ways {
			want := b.run(fmt.Sprintf(plain, way), kill)
			if want.status == 0 {
				t.Errorf("%s: status 0\n%s", want.command, want.output)
			}
			for _, form := range forms[s.MPI] {
				if got := b.run(fmt.Sprintf(form, way), kill); got.status != want.status {
					t.Errorf("%s: status %d, without Pinwheel %d\n%s", got.command, got.status, want.status, got.output)
				}
			}
		}
	})
}

// cancelled bounds how long a job goes on after scancel: Slurm itself waits for KillWait, 2 s here,
// before it kills what SIGTERM has not ended.
const cancelled = 10 * time.Second

func TestCancelledJobLeavesNothing(t *testing.T) {
	eachStack(t, func(t *testing.T, s stack.Stack) {
		for _, form := range forms[s.MPI] {
			command := fmt.Sprintf(form, "100000")
			t.Run(command, func(t *testing.T) {
				b := newBench(t, s, halo)
				had := filesIn("/dev/shm")
				cmd, output := b.start(command)
				testwait.Until(t, "two ranks on the device", func() bool { return b.communicating() == 2 })
				slurmSays(t, "scancel", lastJob(t))
				j := b.wait(cmd, output, cancelled)
				if j.status == 0 {
					t.Errorf("status 0\n%s", j.output)
				}
				begin := time.Now()
				testwait.Until(t, "all its processes have gone", func() bool { return len(b.processes()) == 0 })
				if took := j.took + time.Since(begin); took > cancelled {
					t.Errorf("it went on for %v", took)
				}
				isOld := func(f string) bool { return slices.Contains(had, f) }
				if left := slices.DeleteFunc(filesIn("/dev/shm"), isOld); len(left) > 0 {
					t.Errorf("left in /dev/shm: %q", left)
				}
				if left, _ := filepath.Glob(b.path("pinwheel-*")); len(left) > 0 {
					t.Errorf("left: %q", left)
				}
			})
		}
	})
}

func filesIn(dir string) (names []string) {
	entries, _ := os.ReadDir(dir) // where it is missing there is nothing
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// ranks returns the processes that run the program.
func (b *bench) ranks() (pids []int) {
	for _, pid := range b.processes() {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && exe == b.program {
			pids = append(pids, pid)
		}
	}
	return pids
}

// communicating counts the ranks that have loaded Pinwheel's Go side, which the first large message does.
func (b *bench) communicating() (n int) {
	for _, pid := range b.ranks() {
		maps, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid)) // it may have ended
		if strings.Contains(string(maps), "libpinwheel-go.so") {
			n++
		}
	}
	return n
}

// processes returns those that run in the bench's directory: commands of Slurm, pinwheel, and ranks.
func (b *bench) processes() (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is good
	for _, link := range links {
		if dir, err := os.Readlink(link); err != nil || dir != b.dir {
			continue // it has ended
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
