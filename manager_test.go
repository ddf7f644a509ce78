package pinwheel

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const access = verbs.AccessLocalWrite | verbs.AccessRemoteWrite

// region returns the i-th of many regions of 1 MiB that don't touch each
// other. The simulated provider does not read them.
func region(i int) mem.Range {
	start := mem.Addr(1<<40 + i<<24)
	return mem.Range{Start: start, End: start + 1<<20}
}

// warnings collects what Options.Warn is told.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) add(s string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, s)
}

func (w *warnings) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.list...)
}

// start starts a Manager whose helper runs wherever there is room, over a
// simulated provider unless o names another, and one Thread. A warning that
// the test does not expect fails it.
func start(t testing.TB, o Options) (*Manager, *Thread) {
	t.Helper()
	if o.Provider == nil {
		o.Provider = sim.New(sim.Options{})
	}
	if o.Costs == (verbs.Costs{}) {
		o.Costs = verbs.DefaultCosts // to measure them would mix with what the test does
	}
	if o.IdlePolicy == "" {
		o.IdlePolicy = IdleIgnore
	}
	if o.Warn == nil {
		o.Warn = func(s string) { t.Error("unexpected warning:", s) }
	}
	m, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	th, err := m.Thread()
	if err != nil {
		t.Fatal(err)
	}
	testwait.Bound(t, func() any { return m.Stats() })
	t.Cleanup(func() {
		th.Close()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, th
}

// transfer is one use of a region.
func transfer(t testing.TB, th *Thread, r mem.Range, op Op) {
	t.Helper()
	var u Use
	if err := th.Acquire(&u, r, access, op, nil); err != nil {
		t.Fatal(err)
	}
	if !u.Region().Range.Contains(r) {
		t.Fatalf("acquired %v for %v", u.Region().Range, r)
	}
	th.Release(&u)
}

func pinned(m *Manager) int64 { return m.Stats().Cache.Pinned.Bytes }

func TestHelperReleasesBetweenPeriodicUsesAndRegistersAgain(t *testing.T) {
	for _, policy := range []Policy{Pinwheel, Paper} {
		t.Run(string(policy), func(t *testing.T) {
			// For which each use can't register its memory itself: that is within the usual budget.
			m, th := start(t, Options{Policy: policy, Cost: .0001})
			// How much is pinned at the end of a period says nothing: the helper has registered the region again.
			done := func() bool {
				s := m.Stats().Cache
				return s.HelperDeregisters > 3 && s.HelperRegisters > 3
			}
			for i := 0; i < 400 && !done(); i++ {
				transfer(t, th, region(0), 1)
				time.Sleep(10 * time.Millisecond)
			}
			if !done() {
				t.Errorf("after 400 periods of 10 ms: %+v", m.Stats())
			}
		})
	}
}

func TestPoliciesKeepWhatTheySay(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		o                 Options
		inUse, afterwards int64 // bytes pinned during the last of four uses, and after
		registrations     uint64
	}{
		{Options{Policy: LeavePinned}, 4 * mib, 4 * mib, 4},
		{Options{Policy: LRU, BudgetBytes: 2 * mib}, 2 * mib, 2 * mib, 4},
		{Options{Policy: OnDemand}, mib, 0, 8},
		{Options{Disable: true}, mib, 0, 8},
		{Options{IdlePolicy: "off"}, 4 * mib, 4 * mib, 4},
	} {
		p := sim.New(sim.Options{})
		c.o.Provider = p
		m, th := start(t, c.o)
		for range 2 { // the second round hits, where anything is kept
			for i := range 4 {
				if c.o.Policy == LRU {
					i = min(i, 1) // of which the budget holds two
				}
				var u Use
				if err := th.Acquire(&u, region(i), access, 0, nil); err != nil {
					t.Fatal(err)
				}
				if i == 3 && pinned(m) != c.inUse {
					t.Errorf("%+v: %d bytes pinned in use, want %d", c.o, pinned(m), c.inUse)
				}
				th.Release(&u)
			}
		}
		if got := pinned(m); got != c.afterwards {
			t.Errorf("%+v: %d bytes pinned after use, want %d", c.o, got, c.afterwards)
		}
		if c.o.Policy == LRU {
			for i := range 4 {
				transfer(t, th, region(10+i), 0)
			}
			c.registrations = 6
		}
		if s := p.Stats(); s.Registers != c.registrations {
			t.Errorf("%+v: %d registrations, want %d", c.o, s.Registers, c.registrations)
		}
		if s := p.Stats(); c.o.BudgetBytes > 0 && s.PeakPinnedBytes > c.o.BudgetBytes {
			t.Errorf("%+v: %d bytes pinned at peak", c.o, s.PeakPinnedBytes)
		}
	}
}

func TestHelperHearsOfUsesFromTheThresholdOn(t *testing.T) {
	m, th := start(t, Options{ThresholdBytes: 64 << 10})
	small, big := region(0), region(1)
	small.End = small.Start + 64<<10 - 1
	big.End = big.Start + 64<<10
	for range 10 {
		transfer(t, th, small, 0)
	}
	transfer(t, th, big, 0)
	testwait.Until(t, "the big use is heard of", func() bool { return m.Stats().Helper.Events == 1 })
	if n := m.Stats().Helper.Events; n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func TestWhatIsAcquiredOnceIsNotKept(t *testing.T) {
	for _, policy := range []Policy{Pinwheel, LeavePinned, OnDemand} {
		p := sim.New(sim.Options{})
		m, th := start(t, Options{Policy: policy, Provider: p, BudgetBytes: 2 << 20})
		var once, twice, thrice Use
		for n := range 3 {
			if err := th.AcquireOnce(&once, region(0), access, 1, nil); err != nil || th.Misses() != int64(n+1) {
				t.Fatal(policy, th.Misses(), err)
			}
			if !once.Region().Range.Contains(region(0)) {
				t.Errorf("%s: %+v", policy, once.Region())
			}
			th.Release(&once)
			if n := pinned(m); n != 0 {
				t.Errorf("%s: %d bytes are pinned", policy, n)
			}
		}
		for i, u := range []*Use{&once, &twice} {
			if err := th.AcquireOnce(u, region(i), access, 1, nil); err != nil {
				t.Fatal(policy, err)
			}
		}
		if err := th.AcquireOnce(&thrice, region(2), access, 1, nil); !errors.Is(err, verbs.ErrPinnedMemory) {
			t.Errorf("%s: beyond the budget: %v", policy, err)
		}
		th.Release(&once)
		th.Release(&twice)
		if s := m.Stats(); s.Cache.Known != 0 || s.Cache.Uncached != 5 || s.Helper.Events != 0 {
			t.Errorf("%s: %+v", policy, s)
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if err := th.AcquireOnce(&once, region(0), access, 1, nil); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: after Close: %v", policy, err)
		}
	}
}

func TestBudgetInUseIsAnErrorThatPasses(t *testing.T) {
	_, th := start(t, Options{Policy: LeavePinned, BudgetBytes: 1 << 20})
	var u, v Use
	if err := th.Acquire(&u, region(0), access, 0, nil); err != nil {
		t.Fatal(err)
	}
	if err := th.Acquire(&v, region(1), access, 0, nil); !errors.Is(err, verbs.ErrPinnedMemory) {
		t.Fatalf("Acquire beyond the budget: %v, want %v", err, verbs.ErrPinnedMemory)
	}
	th.Release(&v) // holds nothing
	th.Release(&u)
	th.Release(&u) // holds nothing any more
	transfer(t, th, region(1), 0)
}

func TestInvalidateEndsARegistration(t *testing.T) {
	m, th := start(t, Options{Policy: LeavePinned})
	transfer(t, th, region(0), 0)
	if err := m.Invalidate(region(0)); err != nil {
		t.Fatal(err)
	}
	if n := pinned(m); n != 0 {
		t.Errorf("%d bytes pinned after Invalidate", n)
	}
}

func TestClosedManagerRefuses(t *testing.T) {
	m, th := start(t, Options{})
	transfer(t, th, region(0), 0)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if n := pinned(m); n != 0 {
		t.Errorf("%d bytes pinned after Close", n)
	}
	var u Use
	if err := th.Acquire(&u, region(0), access, 0, nil); !errors.Is(err, regcache.ErrClosed) {
		t.Errorf("Acquire: %v, want %v", err, regcache.ErrClosed)
	}
	if _, err := m.Thread(); !errors.Is(err, ErrClosed) {
		t.Errorf("Thread: %v, want %v", err, ErrClosed)
	}
}

func TestPathDoesNotAllocate(t *testing.T) {
	for _, policy := range []Policy{Pinwheel, LeavePinned} {
		_, th := start(t, Options{Policy: policy, IdlePolicy: "off"})
		th.dq = newRing(th.m) // filled, and overrun, with nobody to empty it
		site := NewSite("here")
		transfer(t, th, region(0), 1)
		allocs := testing.AllocsPerRun(5000, func() {
			var u Use
			_ = th.Acquire(&u, region(0), access, 1, &site)
			th.Release(&u)
		})
		if allocs > 0 {
			t.Errorf("%s: a hit allocates %v times", policy, allocs)
		}
		if th.lost() == 0 {
			t.Error("the ring did not overrun: the test does not test what it says")
		}
		th.dq = nil
	}
}

func TestNewReportsNonsense(t *testing.T) {
	for _, c := range []struct {
		o    Options
		text string
	}{
		{Options{Policy: "best"}, `"best"`},
		{Options{IdlePolicy: "lazy"}, `"lazy"`},
		{Options{BudgetBytes: -1}, "budget -1"},
		{Options{ProviderName: "magic"}, "provider magic"},
	} {
		if _, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("New(%+v): %v, want an error with %s", c.o, err, c.text)
		}
	}
}
