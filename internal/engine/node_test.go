package engine

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/node"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/placement"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// process is an engine with a cache, as a process of a job.
func process(t *testing.T, o NodeOptions, warn func(string)) (*Engine, *regcache.Cache) {
	t.Helper()
	e := New(warn, nil)
	o.Group = regcache.NewGroup(mem.Unlimited)
	c, err := regcache.New(e.Metered(sim.New(sim.Options{})), regcache.Options{Group: o.Group, MaxBytes: mem.Unlimited})
	if err != nil {
		t.Fatal(err)
	}
	e.JoinNode(o)
	e.FollowNode()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		e.LeaveNode(o.Group.Bytes())
	})
	return e, c
}

func registered(t *testing.T, c *regcache.Cache, pages uint64) regcache.Ref {
	t.Helper()
	ref, _, err := c.Acquire(mem.Range{Start: 1 << 40, End: 1<<40 + mem.Addr(pages*mem.PageSize)}, verbs.AccessLocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestProcessPublishesWhatItDoes(t *testing.T) {
	job := fmt.Sprintf("engine-test-%d-publish", os.Getpid())
	_, c := process(t, NodeOptions{Job: job, Rank: 7, BudgetBytes: 1 << 30, Ranks: 2}, func(s string) { t.Error(s) })
	c.Release(registered(t, c, 3))
	v, err := node.Open(job)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	testwait.Until(t, "the registration is seen", func() bool {
		all := v.Members()
		return len(all) == 1 && all[0].First == 1
	}, func() any { return v.Members() })
	s := v.Members()[0]
	if s.Rank != 7 || s.PID != os.Getpid() || s.ShareBytes != 1<<29 || s.First != 1 || s.Late != 0 ||
		s.PinnedBytes != int64(3*mem.PageSize) || s.Helper.CPU != -1 || s.PeakBytes != s.PinnedBytes {
		t.Errorf("%+v", s)
	}
}

func TestProcessThatCannotJoinKeepsToItsEqualPart(t *testing.T) {
	for name, o := range map[string]NodeOptions{
		"a bad job": {Job: "no/job", Rank: 1, BudgetBytes: int64(20 * mem.PageSize), Ranks: 2},
		"another budget": {Job: fmt.Sprintf("engine-test-%d-other", os.Getpid()), Rank: 1,
			BudgetBytes: int64(20 * mem.PageSize), Ranks: 2},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "another budget" {
				first := o
				first.BudgetBytes++
				process(t, first, func(s string) { t.Error(s) })
			}
			warnings := 0
			e, c := process(t, o, func(string) { warnings++ })
			ref := registered(t, c, 10)
			_, _, err := c.Acquire(mem.Range{Start: 1 << 41, End: 1<<41 + mem.Addr(mem.PageSize)}, verbs.AccessLocalWrite)
			if err == nil {
				t.Error("it registers more than its part")
			}
			c.Release(ref)
			if warnings != 1 {
				t.Errorf("%d warnings", warnings)
			}
			if joined := e.node != nil; joined != (name == "another budget") {
				t.Errorf("joined: %t", joined)
			}
		})
	}
}

func TestProcessThatHasUsedNothingPublishesNothing(t *testing.T) {
	job := fmt.Sprintf("engine-test-%d-silent", os.Getpid())
	e, c := process(t, NodeOptions{Job: job, Rank: 0, BudgetBytes: mem.Unlimited, Ranks: 1}, func(s string) { t.Error(s) })
	e.node.stop()
	v, err := node.Open(job)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	e.look(e.node, 0)
	if all := v.Members(); len(all) != 1 || all[0].AtNs != 0 {
		t.Errorf("%+v", all)
	}
	c.Release(registered(t, c, 1))
	e.look(e.node, 0)
	if all := v.Members(); all[0].AtNs == 0 || all[0].First != 1 {
		t.Errorf("%+v", all)
	}
}

// A process may close many caches while uses of their memory go on. Each would take a place in the job for good.
func TestOnlyABudgetKeepsAProcessWithRegisteredMemoryInItsJob(t *testing.T) {
	for name, c := range map[string]struct {
		budget int64
		want   bool
	}{"no budget": {mem.Unlimited, false}, "budget": {1 << 30, true}} {
		t.Run(name, func(t *testing.T) {
			job := fmt.Sprintf("engine-test-%d-%s", os.Getpid(), strings.ReplaceAll(name, " ", "-"))
			e, _ := process(t, NodeOptions{Job: job, BudgetBytes: c.budget, Ranks: 1}, func(s string) { t.Error(s) })
			e.LeaveNode(4096)
			jobs, err := node.Jobs()
			if err != nil {
				t.Fatal(err)
			}
			if got := slices.Contains(jobs, job); got != c.want {
				t.Errorf("in its job: %v, want %v", got, c.want)
			}
		})
	}
}

// Once a second in each process.
func BenchmarkLook(b *testing.B) {
	e := New(func(s string) { b.Error(s) }, nil)
	group := regcache.NewGroup(mem.Unlimited)
	c, err := regcache.New(e.Metered(sim.New(sim.Options{})), regcache.Options{Group: group, MaxBytes: mem.Unlimited})
	if err != nil {
		b.Fatal(err)
	}
	for i := range mem.Addr(1000) {
		ref, _, err := c.Acquire(mem.Range{Start: 1<<40 + i<<20, End: 1<<40 + i<<20 + 1<<16}, verbs.AccessLocalWrite)
		if err != nil {
			b.Fatal(err)
		}
		c.Release(ref)
	}
	e.JoinNode(NodeOptions{Job: fmt.Sprintf("engine-test-%d-bench", os.Getpid()),
		BudgetBytes: mem.Unlimited, Ranks: 1, Group: group})
	e.StartHelper(HelperOptions{Policy: "pinwheel", IdlePolicy: IdlePolicyIgnore,
		Caches: Single{c}, PinnedBytes: group.Bytes})
	for b.Loop() {
		e.look(e.node, 0)
	}
	e.Close()
	c.Close()
	e.LeaveNode(0)
}

func TestHelperOnAGivenProcessorIsPublishedThere(t *testing.T) {
	cpus, err := placement.AllowedCPUs()
	if err != nil {
		t.Fatal(err)
	}
	cpu := cpus[len(cpus)-1]
	group := regcache.NewGroup(mem.Unlimited)
	c, err := regcache.New(sim.New(sim.Options{}), regcache.Options{Group: group, MaxBytes: mem.Unlimited})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	e := New(func(s string) { t.Error(s) }, nil)
	defer e.Close()
	if !e.StartHelper(HelperOptions{Policy: "pinwheel", IdlePolicy: "auto", CPUs: []int{cpu},
		Caches: Single{c}, PinnedBytes: group.Bytes}) {
		t.Fatal("there is no helper")
	}
	if h := e.state(group, 0).Helper; !h.Running || h.CPU != cpu || h.Parked || h.Shared {
		t.Errorf("%+v, want processor %d", h, cpu)
	}
}
