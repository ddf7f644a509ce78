package regcache

import (
	"errors"
	"math"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
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

func TestClosedCacheIdentifiesNothing(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	if id, known := fx.Identify(span(0, 16), both); !known || !fx.Known(id) {
		t.Errorf("region %d, %v, before", id, known)
	}
	if err := fx.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range []mem.Range{span(0, 16), span(100, 1)} {
		if id, known := fx.Identify(r, both); known {
			t.Errorf("%v: region %d", r, id)
		}
	}
}

func TestFreeAndReallocAtTheSameAddressMisses(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	id := fx.use(span(0, 16), both, First)
	fx.Invalidate(span(0, 16)) // free
	if got := fx.use(span(0, 16), both, First); got == id {
		t.Errorf("the new buffer has the old one's ID %d", id)
	}
	if ids := fx.Gone(nil); len(ids) != 1 || ids[0] != id {
		t.Errorf("gone: %v; want [%d]", ids, id)
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
	want := Stats{Hits: 30, First: 1, Late: 1, HelperRegisters: 1, HelperDeregisters: 2,
		Pinned:          Usage{16 * int64(mem.PageSize), 1},
		PeakPinnedBytes: 16 * int64(mem.PageSize), Known: 1}
	if s != want {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
}

func TestQueueOfGoneRegionsIsBounded(t *testing.T) {
	testwait.SkipUnderRace(t, "it has one thread")
	fx := newFixture(t, sim.Options{}, Options{})
	for i := range uint64(maxForgotten + 10) {
		ref, _, err := fx.f.Acquire(span(2*i, 1), both)
		if err != nil {
			t.Fatal(err)
		}
		fx.f.Release(ref)
		fx.Invalidate(span(2*i, 1))
	}
	if ids := fx.Gone(nil); len(ids) == 0 || len(ids) > maxForgotten {
		t.Errorf("%d IDs", len(ids))
	}
	if ids := fx.Gone(nil); len(ids) != 0 {
		t.Errorf("asked again: %d IDs", len(ids))
	}
	if n := cap(fx.reclaimable); n > 64 {
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
	for _, r := range []mem.Range{{Start: base + 10, End: base}, {Start: base, End: math.MaxUint64},
		{Start: 0, End: math.MaxUint64 - 4096}} {
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
		t.Errorf("inner pages have region %d, want %d", got, id)
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

// A use without a Local may be under way when the cache is closed: its table
// stays, until the garbage is collected.
func TestCloseUnmapsWhatNobodyCanRead(t *testing.T) {
	for name, c := range map[string]struct {
		use   func(c *Cache, f *Local)
		stays bool
	}{
		"through a Local":    {func(c *Cache, f *Local) { f.Release(acquired(t, f)) }, false},
		"without a Local":    {func(c *Cache, f *Local) { c.Release(acquired(t, f)) }, true},
		"once, without one":  {func(c *Cache, f *Local) { c.Release(once(t, f)) }, true},
		"through one, twice": {func(c *Cache, f *Local) { f.Release(once(t, f)); f.Release(acquired(t, f)) }, false},
	} {
		cache, err := New(sim.New(sim.Options{}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := cache.Thread()
		if err != nil {
			t.Fatal(err)
		}
		c.use(cache, f)
		hits := cache.Stats().Hits
		f.Close()
		f.Close()
		if err := cache.Close(); err != nil {
			t.Error(err)
		}
		if stays := cache.tab.mem != nil; stays != c.stays {
			t.Errorf("%s: the table stays: %t, want %t", name, stays, c.stays)
		}
		if _, _, err := cache.Acquire(span(0, 16), both); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want %v", name, err, ErrClosed)
		}
		if n := cache.Stats().Hits; n != hits {
			t.Errorf("%s: %d hits, %d after Close", name, hits, n)
		}
	}
}

func acquired(t *testing.T, f *Local) Ref {
	ref, _, err := f.Acquire(span(0, 16), both)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func once(t *testing.T, f *Local) Ref {
	ref, _, err := f.Register(span(0, 16), both)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}
