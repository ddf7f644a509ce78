package slurm_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pinwheel/internal/settings"
	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/monitor"
	"pinwheel/lab/testbed/live/slurm"
	"pinwheel/lab/testbed/live/stack"
)

// taskVariable has the test binary say, as a task of srun, what it knows of itself and the others.
const taskVariable = "LIVE_TEST_SLURM_TASK"

// beTask does that, if this process is such a task.
func beTask() bool {
	if os.Getenv(taskVariable) == "" {
		return false
	}
	fmt.Printf("%s: rank %d, one of %d on this node, %s\n",
		settings.Job(), settings.Rank(), settings.LocalRanks(), settings.Expand("file.%j.%r"))
	return true
}

func TestTasksKnowWhoTheyAre(t *testing.T) {
	if cluster == nil {
		t.Skip(slurm.Missing())
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range cluster.MPI {
		cmd := cluster.Command("srun", "--overcommit", "-n", "3", "--mpi="+kind, self)
		cmd.Env = append(cmd.Env, taskVariable+"=y")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("--mpi=%s: %v\n%s", kind, err, out)
			continue
		}
		id := lastJob(t)
		for rank := range 3 {
			want := fmt.Sprintf("slurm-%s: rank %d, one of 3 on this node, file.%s.%d\n", id, rank, id, rank)
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

// Two jobs at a time, each on its own processor. Each knows its own ranks alone, and has a budget of its own. No
// thread, helpers included, may ever run on a processor of the other job.
func TestJobsOfOneNodeKeepApart(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("two jobs at a time need two processors")
	}
	s, err := stack.Named(stacks[0])
	if err != nil {
		t.Fatal(err)
	}
	var benches []*bench
	var ids []string
	var ends []func() job
	for range 2 {
		b := newBench(t, s, halo)
		// It runs until it is cancelled.
		cmd, output := b.start("srun -n 2 pinwheel run -- ./app 100000 1048576 5", "PINWHEEL_NODE_BUDGET=512M")
		testwait.Until(t, "two ranks on the device", func() bool { return b.communicating() == 2 })
		benches, ids = append(benches, b), append(ids, lastJob(t))
		ends = append(ends, func() job { return b.wait(cmd, output, cancelled) })
	}
	var seen monitor.Look
	testwait.Until(t, "two ranks of two jobs", func() bool {
		seen = benches[0].look()
		return len(seen.Jobs) >= 2 && len(seen.Jobs[0].Ranks)+len(seen.Jobs[1].Ranks) >= 4
	}, func() any { return seen })
	for i, b := range benches {
		name := "slurm-" + ids[i]
		at := slices.IndexFunc(seen.Jobs, func(j monitor.Job) bool { return j.ID == name })
		if at < 0 || len(seen.Jobs) != 2 {
			t.Fatalf("no %s in %+v", name, seen)
		}
		own := seen.Jobs[at]
		var pids, ranks []int
		for _, r := range own.Ranks {
			pids, ranks = append(pids, r.PID), append(ranks, r.Rank)
		}
		slices.Sort(pids)
		if all := slices.Sorted(slices.Values(b.ranks())); !slices.Equal(pids, all) || !slices.Equal(ranks, []int{0, 1}) {
			t.Errorf("%s has the processes %d; ranks %d are the processes %d", name, all, ranks, pids)
		}
		if own.BudgetBytes == nil || *own.BudgetBytes != 512<<20 {
			t.Errorf("%s has a budget of %v", name, own.BudgetBytes)
		}
	}
	first, second := processorsOf(benches[0].ranks()), processorsOf(benches[1].ranks())
	for _, mask := range first {
		if cluster.Groups && intersect(t, mask, second) {
			t.Errorf("threads of one job are allowed on %q, those of the other on %q", first, second)
		}
	}
	t.Logf("processors of the threads of each job: %q, %q", first, second)
	for i, end := range ends {
		slurmSays(t, "scancel", ids[i])
		if j := end(); strings.Contains(j.output, "pinwheel: ") {
			t.Error(j.output)
		}
	}
}

// look returns what pinwheel top sees of all jobs.
func (b *bench) look() (seen monitor.Look) {
	b.t.Helper()
	j := b.run("pinwheel top --once --json")
	if j.status > 1 { // 1: there is no rank yet
		b.t.Fatalf("%s: status %d\n%s", j.command, j.status, j.output)
	}
	if j.status == 0 {
		if err := json.Unmarshal([]byte(j.output), &seen); err != nil {
			b.t.Fatalf("%v\n%s", err, j.output)
		}
	}
	return seen
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
