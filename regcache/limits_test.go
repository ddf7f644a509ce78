package regcache

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"pinwheel/internal/testtree"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestRegistrationFailureIsReturnedAndForgotten(t *testing.T) {
	faults := sim.Failures{Register: []error{syscall.EPERM, syscall.EFAULT}}
	fx := newFixture(t, sim.Options{Fail: faults.Fail}, Options{})
	for _, want := range []error{verbs.ErrNotPermitted, verbs.ErrNotMapped} {
		if _, _, err := fx.f.Acquire(span(0, 16), both); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		fx.check()
	}
	if s := fx.Stats(); s.Known != 0 || s.Failed != 2 || s.Pinned != (Usage{}) {
		t.Errorf("after failures: %+v", s)
	}
	fx.use(span(0, 16), both, First)
}

func TestPassingShortageIsRetried(t *testing.T) {
	faults := sim.Failures{
		Register:   []error{syscall.EAGAIN, syscall.EAGAIN, syscall.EAGAIN},
		Deregister: []error{syscall.EINTR, syscall.EINTR, syscall.EINTR},
	}
	fx := newFixture(t, sim.Options{Fail: faults.Fail}, Options{})
	id := fx.use(span(0, 16), both, First)
	if err := fx.Deregister(id); err != nil {
		t.Error(err)
	}
}

func TestFailedDeregistrationStaysCountedAndIsRepeated(t *testing.T) {
	faults := sim.Failures{Deregister: []error{syscall.EPERM}}
	fx := newFixture(t, sim.Options{Fail: faults.Fail}, Options{})
	id := fx.use(span(0, 16), both, First)
	if err := fx.Deregister(id); !errors.Is(err, verbs.ErrNotPermitted) {
		t.Errorf("got %v", err)
	}
	if s := fx.Stats(); s.Leaked != 1 || s.Pinned.Regions != 1 {
		t.Errorf("%+v", s)
	}
	if n, err := fx.Clean(); n != 1 || err != nil || fx.Stats().Leaked != 0 || fx.Stats().Pinned.Regions != 0 {
		t.Errorf("Clean: %d, %v; %+v", n, err, fx.Stats())
	}
}

func TestLimitByCountKeepsWhatIsInUse(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{MaxRegions: 3, Confined: true})
	fx.f = fx.shared // recency to the single use
	used := fx.get(span(0, 1), both, First)
	fx.use(span(10, 1), both, First)
	fx.use(span(20, 1), both, First)
	ref, outcome, err := fx.Acquire(span(10, 1), both)
	if err != nil || outcome != Hit {
		t.Fatal(outcome, err)
	}
	fx.put(ref)
	fx.use(span(30, 1), both, First) // evicts 20, the least recently used
	if _, ok := fx.f.IsRegistered(span(20, 1), both); ok {
		t.Error("the least recently used was kept")
	}
	fx.use(span(10, 1), both, Hit)
	held := []Ref{used, fx.get(span(10, 1), both, Hit), fx.get(span(30, 1), both, Hit)}
	const want = "regcache: no room for 0x7f1234588000-0x7f1234589000 (4.0 KiB) in the protection domain: " +
		"12.0 KiB in 3 regions registered, limit inf in 3 regions: out of memory regions"
	if _, _, err := fx.f.Acquire(span(40, 1), both); !errors.Is(err, verbs.ErrRegions) ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("with all in use: %v", err)
	}
	fx.put(held...)
}

func TestLimitByBytesKeepsWhatIsInUse(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{MaxBytes: int64(20 * mem.PageSize)})
	used := fx.get(span(0, 10), both, First)
	fx.use(span(20, 10), both, First)
	fx.use(span(40, 8), both, First) // evicts 20
	if s := fx.Stats(); s.Evicted != 1 || s.PeakPinnedBytes > int64(20*mem.PageSize) {
		t.Errorf("%+v", s)
	}
	if _, _, err := fx.f.Acquire(span(60, 11), both); !errors.Is(err, verbs.ErrPinnedMemory) {
		t.Errorf("more than there is room for: %v", err)
	}
	if _, _, err := fx.f.Acquire(span(60, 21), both); !errors.Is(err, verbs.ErrPinnedMemory) {
		t.Errorf("more than the limit: %v", err)
	}
	fx.put(used)
}

func TestKernelLimitEvictsAndRetries(t *testing.T) {
	fx := newFixture(t, sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(20 * mem.PageSize)}},
		Options{MaxBytes: mem.Unlimited})
	fx.use(span(0, 10), both, First)
	fx.use(span(20, 10), both, First)
	fx.use(span(40, 15), both, First)
	if u := fx.p.Usage(); u.Regions != 1 {
		t.Errorf("%+v", u)
	}
}

func TestKnownRegionsAreBounded(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{KnownRegions: 10})
	var first mem.RegionID
	for i := range uint64(100) {
		id := fx.use(span(2*i, 1), both, First)
		if i == 0 {
			first = id
		}
		fx.Deregister(id)
	}
	if s := fx.Stats(); s.Known > 10 || fx.Known(first) {
		t.Errorf("%+v; the first is known: %v", s, fx.Known(first))
	}
}

func TestUncachedRegistrationEvictsIdleAndIsGoneWhenReleased(t *testing.T) {
	fx := newFixture(t, sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(20 * mem.PageSize)}},
		Options{MaxBytes: mem.Unlimited})
	fx.use(span(0, 16), both, First)
	ref, _, err := fx.f.Register(span(100, 16), both)
	if err != nil {
		t.Fatal(err)
	}
	fx.check()
	if _, ok := fx.f.IsRegistered(span(100, 16), both); ok || ref.ID() != 0 {
		t.Error("an uncached registration was found in the cache")
	}
	fx.put(ref)
	if u := fx.p.Usage(); u.Regions != 0 {
		t.Errorf("%+v", u)
	}
}

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
