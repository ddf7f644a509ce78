package regcache

import (
	"errors"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs/sim"
)

func TestDeregistrationsOfABatchShareOneBarrier(t *testing.T) {
	const n = 10
	fx := newFixture(t, sim.Options{}, Options{})
	var ids []mem.RegionID
	for i := range uint64(n) {
		ids = append(ids, fx.use(span(100*i, 16), both, First))
	}
	busy, _, err := fx.f.Acquire(span(0, 16), both)
	if err != nil {
		t.Fatal(err)
	}
	before := fx.tab.barriers
	fx.CloseIdle(ids)
	fx.CloseIdle(append(ids, 1000)) // no region has that ID
	fx.check()
	fx.use(span(100, 16), both, Hit) // needed after all
	for i, id := range ids[2:] {
		if did, err := fx.TryDeregister(id); !did || err != nil {
			t.Errorf("region %d: deregistered: %t, %v", i+2, did, err)
		}
	}
	if made := fx.tab.barriers - before; made != 1 {
		t.Errorf("%d barriers for a batch, want 1", made)
	}
	if _, err := fx.TryDeregister(ids[0]); !errors.Is(err, ErrInUse) {
		t.Errorf("deregistration of what is in use: %v", err)
	}
	fx.f.Release(busy)
	fx.use(span(0, 16), both, Hit)
	before = fx.tab.barriers
	if n, err := fx.Clean(); n != 2 || err != nil {
		t.Errorf("Clean released %d regions: %v", n, err)
	}
	if made := fx.tab.barriers - before; made != 1 {
		t.Errorf("%d barriers for Clean, want 1", made)
	}
}

// A region that was closed for a deregistration that does not come serves again, without a miss for ever.
func TestClosedRegionOpensWithItsNextUse(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	id := fx.use(span(0, 16), both, First)
	fx.CloseIdle([]mem.RegionID{id})
	if _, ok := fx.f.hit(span(0, 16), packAccess(both)); ok {
		t.Fatal("a hit on a closed region")
	}
	fx.use(span(0, 16), both, Hit)
	ref, ok := fx.f.hit(span(0, 16), packAccess(both))
	if !ok {
		t.Fatal("no hit on a region that was opened again")
	}
	if _, err := fx.TryDeregister(id); !errors.Is(err, ErrInUse) {
		t.Errorf("deregistration of what is in use: %v", err)
	}
	fx.f.Release(ref)
}

// A region that was closed for a deregistration grows instead, and is registered anew. Meanwhile no batch may open
// it, not even if a reader counts a reference to it for a moment.
func TestClosedRegionThatGrowsIsNotOpenedBeforeItIsRegistered(t *testing.T) {
	var fx *fixture
	var id, other mem.RegionID
	asked := false
	fx = newFixture(t, sim.Options{Fail: func(op sim.Op, r mem.Range) error {
		if op != sim.OpRegister || r != span(0, 17) {
			return nil
		}
		asked = true
		slot := fx.byID.get(id).slot
		fx.f.count(slot, 1)
		fx.CloseIdle([]mem.RegionID{id, other})
		fx.f.count(slot, ^uint64(0))
		if ref, ok := fx.f.hit(span(0, 16), packAccess(both)); ok {
			t.Error("a hit on a region that is being registered")
			fx.f.Release(ref)
		}
		return nil
	}}, Options{})
	id, other = fx.use(span(0, 16), both, First), fx.use(span(100, 16), both, First)
	fx.CloseIdle([]mem.RegionID{id})
	fx.use(span(1, 16), both, First)
	if !asked {
		t.Error("the region did not grow")
	}
}
