package pinwheel

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pinwheel/helper"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestHelperThatCannotStartIsReportedOnce(t *testing.T) {
	var w warnings
	m, th := start(t, Options{HelperCPUs: []int{1023}, Warn: w.add})
	for i := range 10 {
		transfer(t, th, region(i), 0)
	}
	if got := w.all(); len(got) != 1 || !strings.Contains(got[0], "1023") || !strings.Contains(got[0], "without helper") {
		t.Errorf("warnings %q", got)
	}
	if n := pinned(m); n != 10<<20 {
		t.Errorf("%d bytes pinned, want what leave-pinned keeps", n)
	}
}

// faulty is a provider with a bug: the call that trips it panics.
type faulty struct {
	verbs.Provider
	trip func(op string) bool
}

func (f faulty) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if f.trip("register") {
		panic("trained fault")
	}
	return f.Provider.Register(r, a)
}

func (f faulty) Deregister(r verbs.Region) error {
	if f.trip("deregister") {
		panic("trained fault")
	}
	return f.Provider.Deregister(r)
}

func TestFaultOfTheProviderLeavesPlainRegistration(t *testing.T) {
	var w warnings
	calls := 0
	p := sim.New(sim.Options{})
	m, th := start(t,
		Options{Policy: LeavePinned, Warn: w.add, Provider: faulty{p, func(string) bool { calls++; return calls == 3 }}})
	for i := range 6 { // the third panics
		transfer(t, th, region(i), 0)
	}
	expectPlain(t, m, p, w.all(), 4)
}

func TestFaultOfTheCacheLeavesPlainRegistration(t *testing.T) {
	var w warnings
	p := sim.New(sim.Options{})
	m, th := start(t, Options{Policy: LeavePinned, Warn: w.add, Provider: p})
	transfer(t, th, region(0), 0)
	transfer(t, th, region(1), 0)
	local := th.local
	th.local = nil
	for i := range 3 {
		transfer(t, th, region(2+i), 0)
	}
	var u Use
	if err := th.AcquireOnce(&u, region(5), access, 0, nil); err != nil {
		t.Error(err)
	}
	th.Release(&u)
	th.local = local
	expectPlain(t, m, p, w.all(), 4)
}

// expectPlain: two registrations went well before the fault, the uses after
// it past the cache.
func expectPlain(t *testing.T, m *Manager, p *sim.Provider, warned []string, uses int64) {
	t.Helper()
	if len(warned) != 1 || !strings.Contains(warned[0], "fault") || !strings.Contains(warned[0], "plain registration") {
		t.Errorf("warnings %q", warned)
	}
	if s := m.Stats(); s.Faulted != uses {
		t.Errorf("%d uses past the cache, want %d", s.Faulted, uses)
	}
	if n := p.Usage().PinnedBytes; n != 2<<20 {
		t.Errorf("%d bytes pinned, want those of the two registrations before the fault", n)
	}
}

func TestFaultThatPlainRegistrationMeetsTooIsTheCallersToKnow(t *testing.T) {
	var warned, details warnings
	_, th := start(t, Options{Policy: LeavePinned, Warn: warned.add, Debug: details.add,
		Provider: faulty{sim.New(sim.Options{}), func(string) bool { panic("trained fault\nof two lines") }}})
	for range 2 {
		var u Use
		if err := th.Acquire(&u, region(0), access, 0, nil); !errors.Is(err, ErrFault) ||
			!strings.Contains(err.Error(), "trained fault") {
			t.Errorf("Acquire: %v, want %v with its cause", err, ErrFault)
		}
		th.Release(&u)
	}
	if got := warned.all(); len(got) != 1 || strings.Contains(got[0], "\n") {
		t.Errorf("warnings %q, want one of one line", got)
	}
	if got := details.all(); len(got) != 1 || !strings.Contains(got[0], "fault_test.go") {
		t.Errorf("details %q, want one with the stack", got)
	}
}

// brokenRegistrar is a fault of the helper alone: of what it drives.
type brokenRegistrar struct{ helper.Registrar }

func (brokenRegistrar) Register(mem.RegionID) error { panic("trained fault") }

func TestFaultOfTheHelperLeavesMemoryPinned(t *testing.T) {
	var w warnings
	m, th := start(t, Options{Policy: Paper, Warn: w.add, Window: NoWindow,
		wrapRegistrar: func(r helper.Registrar) helper.Registrar { return brokenRegistrar{r} }})
	testwait.Until(t, "the helper registers, and stops", func() bool {
		transfer(t, th, region(0), 0)
		time.Sleep(5 * time.Millisecond) // the period
		return m.Stats().Helper.Faulted && len(w.all()) > 0
	})
	for i := range 5 { // misses register inline, and stay
		transfer(t, th, region(i), 0)
	}
	before := m.Stats().Cache
	for range 3 { // hits go on
		for i := range 5 {
			transfer(t, th, region(i), 0)
		}
	}
	s := m.Stats()
	if hits := s.Cache.Hits - before.Hits; hits != 15 || s.Cache.Pinned.Bytes != 5<<20 || s.Faulted != 0 {
		t.Errorf("%d hits of 15, %d bytes pinned, %d plain registrations", hits, s.Cache.Pinned.Bytes, s.Faulted)
	}
	expectOneWarning(t, &w, "without helper thread")
}

func expectOneWarning(t *testing.T, w *warnings, what string) {
	t.Helper()
	got := w.all()
	if len(got) != 1 || strings.Contains(got[0], "\n") || !strings.Contains(got[0], "trained fault") ||
		!strings.Contains(got[0], what) {
		t.Errorf("warnings %q, want one line that says what happened, and: %s", got, what)
	}
}

// brokenWatcher is a watcher with a bug: it panics when it is drained.
type brokenWatcher struct {
	regcache.Watcher
	word   uint64 // raw: regcache.Watcher.Word points to it
	drains atomic.Int64
}

func (w *brokenWatcher) Word() *uint64                       { return &w.word }
func (*brokenWatcher) Watch(mem.Range) (uint64, bool, error) { return 0, false, nil }
func (*brokenWatcher) Unwatch(uint64)                        {}
func (*brokenWatcher) Pinned(uint64) error                   { return nil }

func (w *brokenWatcher) Drain(func(mem.Range)) (generation uint64) {
	w.drains.Add(1)
	panic("trained fault")
}

// Whoever meets it first, helper or communication thread, and whoever meets it
// next: one line.
func TestFaultOfTheWatcherIsSaidOnce(t *testing.T) {
	var w warnings
	watcher := &brokenWatcher{}
	m, th := start(t, Options{Policy: Paper, Warn: w.add, Watcher: watcher})
	period := func() { transfer(t, th, region(0), 0); time.Sleep(5 * time.Millisecond) }
	testwait.Until(t, "the helper registers", func() bool { period(); return m.Stats().Cache.HelperRegisters > 0 })
	atomic.AddUint64(&watcher.word, 1)
	testwait.Until(t, "a communication thread meets the fault", func() bool { period(); return m.Stats().Faulted > 0 })
	for i := range 5 {
		transfer(t, th, region(1+i), 0)
	}
	testwait.Until(t, "it is said", func() bool { return len(w.all()) > 0 })
	expectOneWarning(t, &w, "trained fault")
	if n := watcher.drains.Load(); n > 3 { // by the helper at a look and for a registration, and by the thread
		t.Errorf("the watcher was asked %d times, by a helper and a thread that should have let go of it", n)
	}
}

func TestMessageThatCannotBeTakenEndsNothing(t *testing.T) {
	_, th := start(t,
		Options{Policy: LeavePinned,
			Provider: faulty{sim.New(sim.Options{}), func(op string) bool { return op == "register" }},
			Warn:     func(string) { panic("no logger") },
			Debug:    func(string) { panic("no logger") },
		})
	var u Use
	if err := th.Acquire(&u, region(0), access, 0, nil); !errors.Is(err, ErrFault) {
		t.Errorf("got %v", err)
	}
}

func TestFaultInNewIsAnError(t *testing.T) {
	m, err := New(Options{Provider: sim.New(sim.Options{}), Watcher: struct{ regcache.Watcher }{}})
	if !errors.Is(err, ErrFault) {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestPassingShortageIsRetried(t *testing.T) {
	faults := sim.Failures{Register: []error{syscall.EAGAIN, syscall.EAGAIN, syscall.EAGAIN}}
	_, th := start(t, Options{Provider: sim.New(sim.Options{Fail: faults.Fail})})
	transfer(t, th, region(0), 0)
}

func TestShortageIsTheCallersToHandle(t *testing.T) {
	faults := sim.Failures{Register: []error{syscall.ENOMEM}}
	_, th := start(t, Options{Provider: sim.New(sim.Options{Fail: faults.Fail})})
	var u Use
	err := th.Acquire(&u, region(0), access, 0, nil)
	if !errors.Is(err, verbs.ErrPinnedMemory) || !errors.Is(err, syscall.ENOMEM) {
		t.Fatalf("Acquire: %v, want %v", err, verbs.ErrPinnedMemory)
	}
	transfer(t, th, region(0), 0)
}
