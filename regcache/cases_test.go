package regcache

import (
	"errors"
	"math"
	"testing"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// The cases that UCX's test_rcache.cc, libfabric's fi_mr_cache_evict and its
// EFA provider's unit tests have, and those that their users reported.

func TestGetAfterUnmapRegistersAgain(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	fx.use(span(0, 16), both, First)
	if err := fx.Invalidate(span(3, 1)); err != nil {
		t.Fatal(err)
	}
	fx.check()
	if u := fx.p.Usage(); u.Regions != 0 {
		t.Errorf("after unmap: %+v still registered", u)
	}
	fx.use(span(0, 16), both, First)
}

func TestFreeAndReallocAtTheSameAddressMisses(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	id := fx.use(span(0, 16), both, First)
	fx.Invalidate(span(0, 16)) // free
	if got := fx.use(span(0, 16), both, First); got == id {
		t.Errorf("the new buffer has the old one's ID %d", id)
	}
	if ids, lost := fx.Gone(nil); len(ids) != 1 || ids[0] != id || lost {
		t.Errorf("gone: %v, %v; want [%d]", ids, lost, id)
	}
}

func TestFreedButInUseHandleStaysValidUntilReleased(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	old := fx.get(span(0, 16), both, First)
	before := old.Region()
	fx.Invalidate(span(0, 16))
	fx.check()
	again := fx.get(span(0, 16), both, First)
	if old.Region() != before || again.Region().Handle == before.Handle {
		t.Errorf("held %+v, now %+v; new %+v", before, old.Region(), again.Region())
	}
	if u := fx.p.Usage(); u.Regions != 2 {
		t.Errorf("while the freed one is in use: %+v", u)
	}
	fx.put(old)
	if u := fx.p.Usage(); u.Regions != 1 {
		t.Errorf("after its release: %+v", u)
	}
	fx.put(again)
}

func TestPutAndInvalidateMixedDeregistersEachOnce(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	var refs []Ref
	for round := range 5 {
		for range round + 1 {
			ref, _, err := fx.f.Acquire(span(0, 16), both)
			if err != nil {
				t.Fatal(err)
			}
			refs = append(refs, ref)
		}
		fx.put(refs[0])
		refs = refs[1:]
		fx.Invalidate(span(0, 16))
		fx.check()
	}
	fx.put(refs...)
	if s := fx.p.Stats(); s.Registers != 5 || s.Deregisters != 5 || s.UnknownRegions != 0 {
		t.Errorf("5 buffers: %+v", s)
	}
}

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
	ref := fx.get(span(0, 8), write, Late)
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
	writer := fx.get(span(0, 16), write, Late)
	if writer.ID() != id || writer.Region().Access != both || reader.Region() != old {
		t.Errorf("writer %+v of %d; reader %+v of %d", writer.Region(), writer.ID(), reader.Region(), id)
	}
	fx.put(reader)
	fx.put(fx.get(span(0, 16), read, Hit), writer)
	if u := fx.p.Usage(); u.Regions != 1 {
		t.Errorf("after the reader left: %+v", u)
	}
}

func TestRegistrationFailureIsReturnedAndForgotten(t *testing.T) {
	faults, err := sim.Script("register 1 EPERM; register 2 EFAULT")
	if err != nil {
		t.Fatal(err)
	}
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
	faults, err := sim.Script("register 1-3 EAGAIN; deregister 1-3 EINTR")
	if err != nil {
		t.Fatal(err)
	}
	fx := newFixture(t, sim.Options{Fail: faults.Fail}, Options{})
	id := fx.use(span(0, 16), both, First)
	if err := fx.Deregister(id); err != nil {
		t.Error(err)
	}
}

func TestFailedDeregistrationStaysCounted(t *testing.T) {
	faults, err := sim.Script("deregister 1 EPERM")
	if err != nil {
		t.Fatal(err)
	}
	fx := newFixture(t, sim.Options{Fail: faults.Fail}, Options{})
	id := fx.use(span(0, 16), both, First)
	if err := fx.Deregister(id); !errors.Is(err, verbs.ErrNotPermitted) {
		t.Errorf("got %v", err)
	}
	if s := fx.Stats(); s.Leaked != 1 || s.Pinned.Regions != 1 {
		t.Errorf("%+v", s)
	}
	fx.p.Close() // the leak is the device's to release
}

func TestLimitByCountKeepsWhatIsInUse(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{MaxRegions: 3, Confined: true})
	fx.f = fx.common // recency to the single use
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
	if _, _, err := fx.f.Acquire(span(40, 1), both); !errors.Is(err, verbs.ErrRegions) {
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
	fx := newFixture(t, sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(20 * mem.PageSize)}}, Options{MaxBytes: mem.Unlimited})
	fx.use(span(0, 10), both, First)
	fx.use(span(20, 10), both, First)
	fx.use(span(40, 15), both, First)
	if u := fx.p.Usage(); u.Regions != 1 {
		t.Errorf("%+v", u)
	}
}

func TestStatisticsAreExact(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	other, err := fx.Thread()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	id := fx.use(span(0, 16), both, First)
	for range 10 {
		fx.use(span(0, 16), both, Hit)
		ref, _, err := other.Acquire(span(2, 12), both)
		if err != nil {
			t.Fatal(err)
		}
		other.Release(ref)
		if ref, ok := fx.IsRegistered(span(0, 16), both); ok {
			fx.Release(ref)
		}
	}
	fx.Deregister(id)
	fx.Register(id)
	fx.Deregister(id)
	fx.use(span(0, 16), both, Late)
	s := fx.Stats()
	want := Stats{Hits: 30, First: 1, Late: 1, HelperRegisters: 1, HelperDeregisters: 2, Pinned: Usage{16 * int64(mem.PageSize), 1},
		PeakPinnedBytes: 16 * int64(mem.PageSize), Known: 1}
	if s != want {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

func TestQueueOfGoneRegionsIsBoundedAndSaysSo(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	for i := range uint64(goneMax + 10) {
		ref, _, err := fx.f.Acquire(span(2*i, 1), both)
		if err != nil {
			t.Fatal(err)
		}
		fx.f.Release(ref)
		fx.Invalidate(span(2*i, 1))
	}
	if ids, lost := fx.Gone(nil); len(ids) > goneMax || !lost {
		t.Errorf("%d IDs, lost %v", len(ids), lost)
	}
	if ids, lost := fx.Gone(nil); len(ids) != 0 || lost {
		t.Errorf("asked again: %d IDs, lost %v", len(ids), lost)
	}
	if n := cap(fx.orphans); n > 64 {
		t.Errorf("room for %d registrations waiting to be released", n)
	}
}

func TestRequestsThatNobodyCanRegister(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	fx.use(span(0, 1), both, First)
	for _, r := range []mem.Range{{}, {Start: base, End: base}, {Start: base + 5, End: base + 5}} {
		if _, _, err := fx.f.Acquire(r, both); !errors.Is(err, mem.ErrEmpty) {
			t.Errorf("%v: %v, want ErrEmpty", r, err)
		}
	}
	for _, r := range []mem.Range{{Start: base + 10, End: base}, {Start: base, End: math.MaxUint64}, {Start: 0, End: math.MaxUint64 - 4096}} {
		if _, _, err := fx.f.Acquire(r, both); !errors.Is(err, mem.ErrOverflow) {
			t.Errorf("%#x-%#x: %v, want ErrOverflow", r.Start, r.End, err)
		}
	}
	fx.check()
}

func TestLastPagesOfTheAddressSpace(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	end := mem.Addr(math.MaxUint64) - mem.Addr(mem.PageSize) + 1
	for i := range mem.Addr(4) {
		fx.use(mem.Range{Start: end - (i+1)*mem.Addr(mem.PageSize), End: end - i*mem.Addr(mem.PageSize)}, both, First)
	}
	fx.use(mem.Range{Start: end - 10, End: end}, both, Hit)
	fx.use(mem.Range{Start: 1, End: 2}, both, First) // and the first
}

func TestHitsNearPageEdges(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	r := span(10, 4)
	fx.use(r, both, First)
	fx.use(mem.Range{Start: r.Start + 1, End: r.End - 1}, both, Hit)
	fx.use(mem.Range{Start: r.Start, End: r.Start + 1}, both, Hit)
	fx.use(mem.Range{Start: r.End - 1, End: r.End}, both, Hit)
	fx.use(mem.Range{Start: r.End - 1, End: r.End + 1}, both, First)
	fx.use(mem.Range{Start: r.Start - 1, End: r.Start + 1}, both, First)
}

func TestHugePagesAreOneRegionOfSmallOnes(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	const huge = 1 << 30 / 4096
	id := fx.use(span(0, huge), both, First)
	if got := fx.use(span(1, huge-2), both, Hit); got != id {
		t.Errorf("inner pages have home %d, want %d", got, id)
	}
}

func TestSmallRequestInsideAbsentLargeRegionRegistersOnlyItself(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	large := fx.use(span(0, 1024), both, First)
	small := fx.use(span(100, 4), both, Hit) // served by the large one, with a home of its own
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

func TestWithoutHomesAnyCoveringRegionIsTheHome(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{NoHomes: true})
	large := fx.use(span(0, 1024), both, First)
	for i := range uint64(100) {
		if got := fx.use(span(10*i, 3), both, Hit); got != large {
			t.Fatalf("slice %d has home %d, want %d", i, got, large)
		}
	}
	if s := fx.Stats(); s.Known != 1 {
		t.Errorf("%+v", s)
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
	fx := newFixture(t, sim.Options{Limits: verbs.Limits{MaxPinnedBytes: int64(20 * mem.PageSize)}}, Options{MaxBytes: mem.Unlimited})
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

func TestCloseLeavesWhatIsInUseUntilItsRelease(t *testing.T) {
	p := sim.New(sim.Options{})
	c, err := New(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ref, _, err := c.Acquire(span(0, 16), both)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil || p.Usage().Regions != 1 {
		t.Errorf("close: %v, %+v", err, p.Usage())
	}
	c.Release(ref)
	if p.Usage().Regions != 0 {
		t.Errorf("after the release: %+v", p.Usage())
	}
	if _, _, err := c.Acquire(span(0, 16), both); !errors.Is(err, ErrClosed) {
		t.Errorf("acquire: %v", err)
	}
}
