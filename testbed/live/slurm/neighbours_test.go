package slurm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/settings"
	"pinwheel/internal/testwait"
	"pinwheel/testbed/live/slurm"
	"pinwheel/testbed/live/stack"
)

// budgetVariable has the test binary print, as a task of srun, what it may pin.
const budgetVariable = "LIVE_TEST_SLURM_BUDGET"

// budgetOfTask prints it, if this process is such a task.
func budgetOfTask() bool {
	node := os.Getenv(budgetVariable)
	if node == "" {
		return false
	}
	s, _ := settings.Load([]string{"PINWHEEL_NODE_BUDGET=" + node})
	fmt.Printf("budget %d job %s rank %s\n", s.ProcessBudgetBytes(), settings.Expand("%j"), settings.Expand("%r"))
	return true
}

// The tasks of a step share the node's budget, by what Slurm tells them.
func TestTasksKnowHowManyTheyAre(t *testing.T) {
	if cluster == nil {
		t.Skip(slurm.Missing())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range append([]string{"none"}, cluster.MPI...) {
		cmd := cluster.Command("srun", "--overcommit", "-n", "3", "--mpi="+kind, self)
		cmd.Env = append(cmd.Env, budgetVariable+"=96M")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for rank := range 3 {
			want := fmt.Sprintf("budget %d job %s rank %d\n", 32<<20, lastJob(t), rank)
			if !strings.Contains(string(out), want) {
				t.Errorf("--mpi=%s: no %q in\n%s", kind, want, out)
			}
		}
	}
}

var allowed = regexp.MustCompile(`(?m)^Cpus_allowed:\s*([0-9a-f,]+)$`)

// processorsOf returns the masks of all threads of some processes, each once.
func processorsOf(pids []int) (masks []string) {
	for _, pid := range pids {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid)) // the pattern is good
		for _, file := range files {
			text, _ := os.ReadFile(file) // it may have ended
			if m := allowed.FindSubmatch(text); m != nil && !slices.Contains(masks, string(m[1])) {
				masks = append(masks, string(m[1]))
			}
		}
	}
	return masks
}

// Two jobs at a time, each on its own half of the node: no thread of a rank, helpers included, is ever allowed
// on a processor of the other job, and each job reports its own ranks alone.
func TestJobsOfOneNodeKeepApart(t *testing.T) {
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil || cpus.Count() < 2 {
		t.Skipf("two jobs at a time need two processors, %v", err)
	}
	s, err := stack.Named(stacks[0])
	if err != nil {
		t.Fatal(err)
	}
	var benches []*bench
	var ends []func() job
	for range 2 {
		b := newBench(t, s, halo)
		const command = "srun -n 2 pinwheel run --stats=stats.%j.%r.json -- ./app 300 1048576 5"
		cmd, output := b.start(command)
		benches = append(benches, b)
		ends = append(ends, func() job { return b.wait(cmd, output, limit) })
	}
	testwait.Until(t, "four ranks on the device", func() bool {
		return benches[0].communicating() == 2 && benches[1].communicating() == 2
	})
	first, second := processorsOf(benches[0].ranks()), processorsOf(benches[1].ranks())
	for _, mask := range first {
		if intersect(t, mask, second) {
			t.Errorf("threads of one job are allowed on %q, those of the other on %q", first, second)
		}
	}
	for i, b := range benches {
		j := ends[i]()
		if j.status != 0 {
			t.Errorf("status %d", j.status)
		}
		b.moved(2, j.output)
		found, _ := filepath.Glob(b.path("stats.*.json"))
		if len(found) != 2 {
			t.Errorf("reports: %q", found)
		}
	}
}

// intersect reports whether a mask has a processor of any of the others.
func intersect(t *testing.T, mask string, others []string) bool {
	t.Helper()
	return slices.ContainsFunc(others, func(other string) bool { return number(t, mask)&number(t, other) != 0 })
}

// number is a mask as a number: as many processors as it has bits are enough here.
func number(t *testing.T, mask string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(mask[strings.LastIndexByte(mask, ',')+1:], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
