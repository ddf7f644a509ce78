package pinwheel

import (
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestHelperThatCannotStartIsReportedOnce(t *testing.T) {
	var w warnings
	m, th := open(t, Options{HelperCPUs: []int{1023}, Warn: w.add})
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
		panic("seeded fault")
	}
	return f.Provider.Register(r, a)
}

func (f faulty) Deregister(r verbs.Region) error {
	if f.trip("deregister") {
		panic("seeded fault")
	}
	return f.Provider.Deregister(r)
}

func TestFaultOfTheProviderLeavesPlainRegistration(t *testing.T) {
	var w warnings
	calls := 0
	p := sim.New(sim.Options{})
	m, th := open(t, Options{Policy: LeavePinned, Warn: w.add, Provider: faulty{p, func(string) bool { calls++; return calls == 3 }}})
	for i := range 6 { // the third panics
		transfer(t, th, region(i), 0)
	}
	expectPlain(t, m, p, w.all(), 4)
}

func TestFaultOfTheCacheLeavesPlainRegistration(t *testing.T) {
	var w warnings
	p := sim.New(sim.Options{})
	m, th := open(t, Options{Policy: LeavePinned, Warn: w.add, Provider: p})
	transfer(t, th, region(0), 0)
	transfer(t, th, region(1), 0)
	front := th.front
	th.front = nil
	for i := range 4 {
		transfer(t, th, region(2+i), 0)
	}
	th.front = front
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
	_, th := open(t, Options{Policy: LeavePinned, Warn: warned.add, Debug: details.add,
		Provider: faulty{sim.New(sim.Options{}), func(string) bool { panic("seeded fault\nof two lines") }}})
	for range 2 {
		var u Use
		if err := th.Acquire(&u, region(0), access, 0, nil); !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), "seeded fault") {
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

// brokenWatcher is a watcher with a bug: it panics when it is drained.
type brokenWatcher struct {
	regcache.Watcher
	word uint64
}

func (w *brokenWatcher) Word() *uint64                           { return &w.word }
func (*brokenWatcher) Watch(mem.Range) (uint64, bool, error)     { return 0, false, nil }
func (*brokenWatcher) Unwatch(uint64)                            {}
func (*brokenWatcher) Drain(func(mem.Range)) (generation uint64) { panic("seeded fault") }

func TestFaultOfTheHelperLeavesMemoryPinned(t *testing.T) {
	var w warnings
	m, th := open(t, Options{Policy: Paper, Warn: w.add, Watcher: &brokenWatcher{}})
	period := func() { transfer(t, th, region(0), 0); time.Sleep(5 * time.Millisecond) }
	for m.Stats().Cache.HelperRegisters == 0 {
		period()
	}
	atomic.AddUint64(m.opt.Watcher.Word(), 1) // the helper's next registration panics, if not the path's
	eventually(t, "somebody meets the fault", func() bool { period(); return len(w.all()) == 1 })
	if strings.Contains(w.all()[0], "\n") || !strings.Contains(w.all()[0], "seeded fault") {
		t.Errorf("warning %q, want one line that says what happened", w.all()[0])
	}
	for i := range 5 {
		transfer(t, th, region(1+i), 0)
	}
}

func TestPassingShortageIsRetried(t *testing.T) {
	faults, err := sim.Script("register 1-3 EAGAIN")
	if err != nil {
		t.Fatal(err)
	}
	_, th := open(t, Options{Provider: sim.New(sim.Options{Fail: faults.Fail})})
	transfer(t, th, region(0), 0)
}

func TestShortageIsTheCallersToHandle(t *testing.T) {
	faults, err := sim.Script("register 1 ENOMEM")
	if err != nil {
		t.Fatal(err)
	}
	_, th := open(t, Options{Provider: sim.New(sim.Options{Fail: faults.Fail})})
	var u Use
	err = th.Acquire(&u, region(0), access, 0, nil)
	if !errors.Is(err, verbs.ErrPinnedMemory) || !errors.Is(err, syscall.ENOMEM) {
		t.Fatalf("Acquire: %v, want %v", err, verbs.ErrPinnedMemory)
	}
	transfer(t, th, region(0), 0)
}
