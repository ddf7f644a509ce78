package regcache

import (
	"errors"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

func TestBridgingRegionUnitesTwo(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	a := fx.use(span(0, 6), both, First)
	b := fx.use(span(5, 6), both, First)
	if id := fx.use(span(0, 11), both, Late); id != a {
		t.Errorf("the bridge has ID %d, want that of the first, %d", id, a)
	}
	if fx.Known(b) || fx.Stats().Known != 1 {
		t.Errorf("the second was not merged: %+v", fx.Stats())
	}
	if id := fx.use(span(5, 6), both, Hit); id != a {
		t.Errorf("the second's range now belongs to %d, want %d", id, a)
	}
}

func TestNeighboursThatShareAPageCoexist(t *testing.T) { // NAS BT and SP
	fx := newFixture(t, sim.Options{}, Options{})
	a := fx.use(span(0, 8), both, First)
	b := fx.use(span(7, 8), both, First)
	if a == b || fx.use(span(0, 8), both, Hit) != a || fx.use(span(7, 8), both, Hit) != b {
		t.Errorf("IDs %d and %d", a, b)
	}
}

func TestShiftingRangeGrowsInsteadOfPilingUp(t *testing.T) { // NAS IS
	fx := newFixture(t, sim.Options{}, Options{})
	const n = 1000
	id := fx.use(span(5000, n), both, First)
	outcomes := map[Outcome]int{}
	for i, shift := range []uint64{10, 3, 14, 8, 20, 15, 12, 2, 17, 9} {
		ref, o, err := fx.f.Acquire(span(5000+shift, n-uint64(i)), both)
		if err != nil {
			t.Fatal(err)
		}
		if ref.ID() != id {
			t.Errorf("shift %d: region %d, want %d", shift, ref.ID(), id)
		}
		outcomes[o]++
		fx.put(ref)
	}
	if s := fx.Stats(); s.Known != 1 || outcomes[Hit] < 6 || s.Pinned.Bytes > int64(1100*mem.PageSize) {
		t.Errorf("%v, %+v", outcomes, s)
	}
}

func TestMovingWindowRegistersAtMostTwiceWhatItTouches(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	var bytes uint64
	for i := range uint64(1000) { // 64 KiB by 32 KiB over 31.3 MiB; UCX: 15.7 GiB
		ref, o, err := fx.f.Acquire(span(8*i, 16), both)
		if err != nil {
			t.Fatal(err)
		}
		if o != Hit {
			bytes += ref.Region().Range.Len()
		}
		fx.f.Release(ref)
	}
	fx.check()
	if touched := (999*8 + 16) * mem.PageSize; bytes > 2*touched {
		t.Errorf("%s registered for %s", mem.FormatBytes(bytes), mem.FormatBytes(touched))
	}
}

func TestAlignmentGrowthDoesNotCascade(t *testing.T) {
	// Requests that touch when grown to pages must not drag their neighbours in.
	fx := newFixture(t, sim.Options{}, Options{})
	ids := map[mem.RegionID]bool{}
	for i := range mem.Addr(8) {
		start := base + i*mem.Addr(3*mem.PageSize) + 100
		ids[fx.use(mem.Range{Start: start, End: start + mem.Addr(3*mem.PageSize)}, both, First)] = true
	}
	if len(ids) != 8 || fx.p.Usage().PinnedBytes != int64(8*4*mem.PageSize) {
		t.Errorf("%d regions, %+v", len(ids), fx.p.Usage())
	}
}

func TestOverlapWithIdleRegionServesBoth(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	fx.use(span(0, 16), both, First)
	ref := fx.get(span(8, 16), both, First)
	fx.put(fx.get(span(0, 16), both, Hit), ref)
}

func TestNoMergeWithInaccessiblePages(t *testing.T) {
	hole := span(9, 1)
	armed := false
	fx := newFixture(t, sim.Options{Fail: func(op sim.Op, r mem.Range) error {
		if armed && op == sim.OpRegister && r.Overlaps(hole) {
			return verbs.ErrNotMapped
		}
		return nil
	}}, Options{})
	fx.use(span(2, 8), both, First)
	armed = true // page 9 became inaccessible, and nobody said so
	ref := fx.get(span(1, 8), both, First)
	if g := ref.Region().Range; g.Overlaps(hole) {
		t.Errorf("registered %v over the hole", g)
	}
	fx.put(ref)
	if _, _, err := fx.f.Acquire(span(5, 8), both); !errors.Is(err, verbs.ErrNotMapped) {
		t.Errorf("request over the hole: %v", err)
	}
	fx.check()
}

func TestProtectionIsNeverWidenedOrNarrowedSilently(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	fx.use(span(0, 16), read, First)
	// Writing into a part must not make the rest writable.
	ref := fx.get(span(0, 8), write, First)
	if g := ref.Region(); g.Range != span(0, 8) || g.Access != write {
		t.Errorf("write into a part: %+v", g)
	}
	fx.put(ref)
	// Nor may overlapping requests of different rights be united.
	ref = fx.get(span(2, 16), write, First)
	if g := ref.Region(); g.Range != span(2, 16) || g.Access != write {
		t.Errorf("overlap: %+v", g)
	}
	fx.put(ref)
	ref = fx.get(span(0, 16), read, Hit)
	if g := ref.Region(); g.Access != read {
		t.Errorf("reading: %+v", g)
	}
	fx.put(ref)
}

func TestUpgradeFromReadToWriteKeepsUsersAndID(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	reader := fx.get(span(0, 16), read, First)
	id, old := reader.ID(), reader.Region()
	writer := fx.get(span(0, 16), write, First)
	if writer.ID() != id || writer.Region().Access != both || reader.Region() != old {
		t.Errorf("writer %+v of %d; reader %+v of %d", writer.Region(), writer.ID(), reader.Region(), id)
	}
	fx.put(reader)
	fx.put(fx.get(span(0, 16), read, Hit), writer)
	if u := fx.p.Usage(); u.Regions != 1 {
		t.Errorf("after the reader left: %+v", u)
	}
}

func TestSmallRequestInsideAbsentLargeRegionRegistersOnlyItself(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	large := fx.use(span(0, 1024), both, First)
	small := fx.use(span(100, 4), both, Hit) // served by the large one, with a region of its own
	fx.Deregister(large)
	ref := fx.get(span(100, 4), both, Late)
	if small == large || ref.ID() != small || ref.Region().Range != span(100, 4) {
		t.Errorf("large %d, small %d, then %d with %v", large, small, ref.ID(), ref.Region().Range)
	}
	fx.put(ref)
	fx.Register(large)
	fx.Deregister(small)
	if got := fx.use(span(100, 4), both, Hit); got != small {
		t.Errorf("identity depends on what is registered: %d, want %d", got, small)
	}
}

func TestAnyCoveringRegionServesIfAskedTo(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{AnyCovering: true})
	large := fx.use(span(0, 1024), both, First)
	for i := range uint64(100) {
		if got := fx.use(span(10*i, 3), both, Hit); got != large {
			t.Fatalf("slice %d has region %d, want %d", i, got, large)
		}
	}
	if s := fx.Stats(); s.Known != 1 {
		t.Errorf("%+v", s)
	}
}

// TestGrownRegionReleasesItsOldRegistration: idle, before the new one is made;
// in use, with its last reference, whoever drops it. NAS MG grows by a page at a time.
func TestGrownRegionReleasesItsOldRegistration(t *testing.T) {
	for _, confined := range []bool{false, true} {
		fx := newFixture(t, sim.Options{}, Options{Confined: confined})
		id := fx.use(span(0, 258), both, First)
		if got := fx.use(span(0, 260), both, First); got != id {
			t.Errorf("grown region has ID %d, was %d", got, id)
		}
		if s := fx.p.Stats(); s.Regions != 1 || s.PeakRegions != 1 {
			t.Errorf("grown while idle: %+v", s)
		}
		old := []Ref{fx.get(span(0, 260), both, Hit), fx.get(span(1, 259), both, Hit)}
		fx.put(fx.get(span(0, 262), both, First))
		if err := fx.Deregister(id); err != nil {
			t.Errorf("the grown registration is idle: %v", err)
		}
		if u := fx.p.Usage(); u.Regions != 1 || u.PinnedBytes != int64(260*mem.PageSize) {
			t.Errorf("with the old one in use: %+v", u)
		}
		fx.put(old[0])
		fx.Release(old[1]) // through another Local
		if u := fx.p.Usage(); u.Regions != 0 {
			t.Errorf("after the last reference: %+v", u)
		}
		fx.use(span(0, 262), both, Late)
	}
}
