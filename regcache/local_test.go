package regcache

import (
	"bytes"
	"testing"

	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestHitsAllocateNothing(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	fx.use(span(0, 16), both, First)
	fx.use(span(100, 1000), both, First)
	fx.use(span(200, 600), both, Hit)
	for name, f := range map[string]*Local{"one thread's": fx.f, "shared": fx.shared} {
		n := testing.AllocsPerRun(100, func() {
			for _, r := range []struct{ from, pages uint64 }{{0, 16}, {1, 15}, {200, 600}} {
				ref, outcome, err := f.Acquire(span(r.from, r.pages), both)
				if err != nil || outcome != Hit {
					t.Fatal(outcome, err)
				}
				f.Release(ref)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func TestHitWritesOnlyToMemoryOfItsThread(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{KnownRegions: 100})
	fx.use(span(0, 16), both, First)
	id := fx.use(span(100, 1000), both, First)
	fx.use(span(150, 100), both, Hit) // with a region of its own, not registered
	before := bytes.Clone(fx.tab.mem)
	others := bytes.Clone(fx.tab.localMem[0])
	for _, r := range []struct{ from, pages uint64 }{{0, 16}, {2, 10}, {150, 100}, {100, 1000}} {
		ref, _, err := fx.f.Acquire(span(r.from, r.pages), both)
		if err != nil {
			t.Fatal(err)
		}
		fx.f.Release(ref)
	}
	if !bytes.Equal(before, fx.tab.mem) || !bytes.Equal(others, fx.tab.localMem[0]) {
		t.Error("a hit wrote to memory that other threads use")
	}
	if !fx.Known(id) {
		t.Error("the region was lost")
	}
}

// TestWithoutMembarrierHitsFence runs where membarrier(2) is forbidden.
func TestWithoutMembarrierHitsFence(t *testing.T) {
	was := haveMembarrier
	haveMembarrier = func() bool { return false }
	defer func() { haveMembarrier = was }()
	fx := newFixture(t, sim.Options{}, Options{})
	if !fx.f.shared || fx.tab.flags&flagFenced == 0 {
		t.Error("hits don't fence")
	}
	fx.use(span(0, 16), both, First)
	fx.put(fx.get(span(0, 16), both, Hit), fx.get(span(4, 12), both, Hit))
	TestHitAndDeregistrationNeverBothSucceed(t)
}

func TestRightsThatTheTableCannotExpressAreRegisteredForOneUse(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	const odd = both | verbs.Access(1<<5) // IBV_ACCESS_ZERO_BASED
	fx.use(span(0, 16), both, First)
	ref := fx.get(span(0, 16), odd, First)
	if ref.ID() != 0 {
		t.Errorf("cached as %d", ref.ID())
	}
	if _, ok := fx.f.IsRegistered(span(0, 16), odd); ok {
		t.Error("found in the cache")
	}
	fx.put(ref)
}

func TestLocalIsReusedByTheNextThread(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	a, err := fx.Thread()
	if err != nil {
		t.Fatal(err)
	}
	ref, _, err := a.Acquire(span(0, 16), both)
	if err != nil {
		t.Fatal(err)
	}
	a.Close()
	b, err := fx.Thread()
	if err != nil || b != a {
		t.Fatalf("another Local, %v", err)
	}
	if err := fx.Deregister(ref.ID()); err == nil {
		t.Error("the reference of the thread that ended does not count")
	}
	fx.f.Release(ref)
	b.Close()
}
