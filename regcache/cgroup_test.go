package regcache

import (
	"testing"
	"testing/fstest"

	"pinwheel/internal/testtree"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestCgroupLimitLeavesAQuarter(t *testing.T) {
	for limit, want := range map[string]int64{"1000": 750, "max": mem.Unlimited} {
		root := testtree.Parse(t, `
proc/self/cgroup: 0::/slurm/job_7/step_0
proc/self/mountinfo: 30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw
sys/fs/cgroup/slurm/job_7/memory.max: `+limit)
		if got := CgroupLimit(root); got != want {
			t.Errorf("%s: %d, want %d", limit, got, want)
		}
	}
	if got := CgroupLimit(fstest.MapFS{}); got != mem.Unlimited {
		t.Errorf("without control groups: %d", got)
	}
}

func TestLimitsDefaultToTheProviders(t *testing.T) {
	fx := newFixture(t,
		sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(8 * mem.PageSize), MaxRegions: 3}}, Options{})
	if fx.limits != (Limits{int64(8 * mem.PageSize), 3}) {
		t.Errorf("%+v", fx.limits)
	}
}
