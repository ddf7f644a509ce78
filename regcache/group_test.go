package regcache

import (
	"errors"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestLimitOfTheProcessEvictsIdleRegionsOfAllDomains(t *testing.T) {
	g := NewGroup(int64(20 * mem.PageSize))
	a := newFixture(t, sim.Options{}, Options{Group: g})
	b := newFixture(t, sim.Options{}, Options{Group: g})
	a.use(span(0, 10), both, First)
	held := a.get(span(20, 4), both, First)
	b.use(span(0, 10), both, First) // at the expense of a's idle one
	if n := a.Stats().Pinned.Regions; n != 1 || g.Bytes() != int64(14*mem.PageSize) {
		t.Errorf("a has %d registrations, the process %d bytes", n, g.Bytes())
	}
	ref := b.get(span(40, 16), both, First) // at the expense of b's own
	if _, _, err := a.f.Acquire(span(40, 1), both); !errors.Is(err, verbs.ErrPinnedMemory) {
		t.Errorf("with all in use: %v", err)
	}
	a.put(held)
	b.put(ref)
	if n, err := g.Clean(); n != 2 || err != nil || g.Bytes() != 0 {
		t.Errorf("clean: %d, %v, %d bytes left", n, err, g.Bytes())
	}
}

func TestKernelShortageEvictsIdleRegionsOfOtherDomains(t *testing.T) {
	// Two domains on one device: what one holds, the other lacks.
	p := sim.New(sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(10 * mem.PageSize)}})
	g := NewGroup(mem.Unlimited)
	var caches [2]*Cache
	for i := range caches {
		c, err := New(p, Options{Group: g, MaxBytes: mem.Unlimited})
		if err != nil {
			t.Fatal(err)
		}
		caches[i] = c
	}
	for round := range 4 {
		ref, _, err := caches[round%2].Acquire(span(0, 8), both)
		if err != nil {
			t.Fatal(err)
		}
		caches[round%2].Release(ref)
	}
	for _, c := range caches {
		if err := errors.Join(c.Verify(), c.Close()); err != nil {
			t.Error(err)
		}
	}
	if g.Bytes() != 0 || p.Usage() != (verbs.Usage{}) {
		t.Errorf("%d bytes, %+v", g.Bytes(), p.Usage())
	}
}

func TestLoweredLimitsEvictAtOnce(t *testing.T) {
	g := NewGroup(mem.Unlimited)
	fx := newFixture(t, sim.Options{}, Options{Group: g})
	for i := range uint64(6) {
		fx.use(span(20*i, 10), both, First)
	}
	if err := fx.SetLimits(Limits{Bytes: int64(45 * mem.PageSize), Regions: 3}); err != nil {
		t.Fatal(err)
	}
	fx.check()
	if n := fx.Stats().Pinned.Regions; n != 3 {
		t.Errorf("limit of 3: %d registrations", n)
	}
	if err := g.SetLimits(Limits{int64(100 * mem.PageSize), 2}); err != nil {
		t.Fatal(err)
	}
	if n := fx.Stats().Pinned.Regions; n != 2 {
		t.Errorf("limit of 2 in the process: %d registrations", n)
	}
	held := []Ref{fx.get(span(100, 10), both, Hit), fx.get(span(80, 10), both, Hit)}
	if _, _, err := fx.f.Acquire(span(500, 1), both); !errors.Is(err, verbs.ErrRegions) {
		t.Errorf("with both in use: %v", err)
	}
	fx.put(held...)
	if err := g.SetLimits(Limits{int64(10 * mem.PageSize), mem.Unlimited}); err != nil {
		t.Fatal(err)
	}
	fx.check()
	if n := fx.Stats().Pinned.Regions; n != 1 {
		t.Errorf("limit of 10 pages: %d registrations of 10", n)
	}
	if err := fx.SetLimits(Limits{Bytes: -1}); err == nil {
		t.Error("a negative limit was accepted")
	}
}
