package sim_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
	"pinwheel/verbs/verbstest"
)

func pages(from, n uint64) mem.Range {
	return mem.Range{Start: mem.Addr(from * mem.PageSize), End: mem.Addr((from + n) * mem.PageSize)}
}

func TestConformance(t *testing.T) { conforms(t, sim.Options{}) }

func TestConformanceUnderLatency(t *testing.T) {
	conforms(t, sim.Options{Wait: true,
		Costs: verbs.Costs{Register: verbs.Cost{FixedNs: 2000}, Deregister: verbs.Cost{FixedNs: 1000}}})
}

func conforms(t *testing.T, o sim.Options) {
	var failing atomic.Bool
	o.Fail = func(op sim.Op, _ mem.Range) error {
		if failing.Load() && op == sim.OpDeregister {
			return syscall.ENOMEM
		}
		return nil
	}
	verbstest.TestProvider(t, func(testing.TB) verbs.Provider { return sim.New(o) }, func(_ testing.TB, f func()) {
		failing.Store(true)
		defer failing.Store(false)
		f()
	})
}

func TestLimitsAreExact(t *testing.T) {
	p := sim.New(sim.Options{Limits: verbs.Limits{MaxRegions: 3, MaxRegionBytes: int64(4 * mem.PageSize),
		MaxPinnedBytes: int64(6 * mem.PageSize)}})
	mustFail := func(r mem.Range, kind error) {
		t.Helper()
		if _, err := p.Register(r, 0); !errors.Is(err, kind) {
			t.Errorf("Register %v: %v, want %v", r, err, kind)
		}
	}
	mustFail(pages(1, 5), verbs.ErrRegionSize)
	var held []verbs.Region
	for _, r := range []mem.Range{pages(1, 4), pages(1, 1)} {
		g, err := p.Register(r, 0)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, g)
	}
	mustFail(pages(20, 2), verbs.ErrPinnedMemory)
	if _, err := p.Register(pages(20, 1), 0); err != nil {
		t.Errorf("last page of the limit: %v", err)
	}
	mustFail(pages(30, 1), verbs.ErrRegions)
	if err := p.Deregister(held[0]); err != nil {
		t.Fatal(err)
	}
	want := sim.Stats{Usage: verbs.Usage{Regions: 2, PinnedBytes: int64(2 * mem.PageSize)}, PeakRegions: 3,
		PeakPinnedBytes: int64(6 * mem.PageSize), Registers: 3, Deregisters: 1, Failed: 3}
	if got := p.Stats(); got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestFailuresHitTheirCalls(t *testing.T) {
	faults := sim.Failures{
		Register:   []error{nil, syscall.ENOMEM, syscall.EAGAIN, syscall.EAGAIN},
		Deregister: []error{syscall.EFAULT},
	}
	slow := func(op sim.Op, _ mem.Range) time.Duration {
		return map[sim.Op]time.Duration{sim.OpRegister: time.Millisecond, sim.OpDeregister: 3 * time.Millisecond}[op]
	}
	p := sim.New(sim.Options{Fail: faults.Fail, Delay: slow})
	var last verbs.Region
	for i, want := range []error{nil, verbs.ErrPinnedMemory, verbs.ErrBusy, syscall.EAGAIN, nil} {
		g, err := p.Register(pages(1, 1), 0)
		if !errors.Is(err, want) {
			t.Errorf("registration %d: %v, want %v", i+1, err, want)
		}
		last = g
	}
	if err := p.Deregister(last); !errors.Is(err, verbs.ErrNotMapped) {
		t.Errorf("first deregistration: %v", err)
	}
	if u := p.Usage(); u.Regions != 2 {
		t.Errorf("a failed deregistration changed the usage: %+v", u)
	}
	for _, g := range p.Regions() {
		if err := p.Deregister(g); err != nil {
			t.Errorf("Deregister %+v: %v", g, err)
		}
	}
	if s := p.Stats(); s.RegisterNs != int64(2*time.Millisecond) || s.DeregisterNs != int64(6*time.Millisecond) {
		t.Errorf("modelled durations %+v", s)
	}
}

func TestOwnErrorsPassUnchanged(t *testing.T) {
	mine := errors.New("mine")
	p := sim.New(sim.Options{Fail: func(sim.Op, mem.Range) error { return mine }})
	if _, err := p.Register(pages(1, 1), 0); err != mine {
		t.Errorf("got %v", err)
	}
}

func TestWaitTakesAtLeastTheModelledTime(t *testing.T) {
	p := sim.New(sim.Options{Wait: true, Costs: verbs.Costs{Register: verbs.Cost{FixedNs: 300_000, PerPageNs: 1000}}})
	start := time.Now()
	if _, err := p.Register(pages(1, 10), 0); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < 310*time.Microsecond {
		t.Errorf("registration returned after %v", d)
	}
}

func BenchmarkRegisterDeregister(b *testing.B) {
	p := sim.New(sim.Options{})
	for b.Loop() {
		g, _ := p.Register(pages(1, 16), 0)
		_ = p.Deregister(g)
	}
}
