package regcache

import (
	"errors"
	"math"
	"testing"

	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// ways are the calls that register what a thread asks for.
func ways(f *Local) map[string]func(mem.Range, verbs.Access) (Ref, Outcome, error) {
	return map[string]func(mem.Range, verbs.Access) (Ref, Outcome, error){"Acquire": f.Acquire, "Register": f.Register}
}

// TestWhatCanNotFitEvictsNothing asks for more than each of the bounds.
func TestWhatCanNotFitEvictsNothing(t *testing.T) {
	room := int64(64 * mem.PageSize)
	for name, c := range map[string]struct {
		limits verbs.Limits
		o      Options
		want   error
	}{
		"cache's budget":   {verbs.Limits{}, Options{MaxBytes: room}, verbs.ErrPinnedMemory},
		"process's budget": {verbs.Limits{}, Options{Group: NewGroup(room)}, verbs.ErrPinnedMemory},
		"provider's pinned memory": {verbs.Limits{MaxPinnedBytes: room},
			Options{MaxBytes: mem.Unlimited}, verbs.ErrPinnedMemory},
		"provider's size of region": {verbs.Limits{MaxRegionBytes: room}, Options{}, verbs.ErrRegionSize},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, sim.Options{Limits: c.limits}, c.o)
			fx.use(span(0, 40), both, First)
			fx.use(span(100, 20), both, First)
			for _, bytes := range []uint64{65 * mem.PageSize, 1 << 42, 1 << 46, 1 << 47, 1 << 56, 1 << 62} {
				r := mem.Range{Start: base, End: base + mem.Addr(bytes)}
				if bytes == 1<<62 {
					r = mem.Range{Start: 0x1000, End: 0x1000 + 1<<62}
				}
				for call, f := range ways(fx.f) {
					if _, _, err := f(r, both); !errors.Is(err, c.want) {
						t.Errorf("%s of %v: %v, want %v", call, r, err, c.want)
					}
				}
				if _, ok := fx.f.IsRegistered(r, both); ok {
					t.Errorf("%v is registered", r)
				}
				fx.check()
			}
			if s := fx.Stats(); s.Evicted != 0 || s.Known != 2 || s.Grown != 0 {
				t.Errorf("%+v", s)
			}
			fx.use(span(0, 40), both, Hit)
			fx.use(span(100, 20), both, Hit)
		})
	}
}

// TestRegionGrowsNoLargerThanFits overlaps two requests each of which fits.
func TestRegionGrowsNoLargerThanFits(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{MaxBytes: int64(64 * mem.PageSize)})
	fx.use(span(0, 48), both, First)
	fx.use(span(20, 48), both, First) // with the first it would be 68 pages
	fx.use(span(0, 48), both, Late)
	fx.use(span(20, 48), both, Late)
}

// TestRegionShrinksWhenItFitsNoLonger lowers the limit below a region that has grown.
func TestRegionShrinksWhenItFitsNoLonger(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	id := fx.use(span(0, 48), both, First)
	if got := fx.use(span(20, 48), both, First); got != id {
		t.Fatalf("region %d has not grown, there is a region %d", id, got)
	}
	if err := fx.SetLimits(Limits{int64(64 * mem.PageSize), mem.Unlimited}); err != nil {
		t.Fatal(err)
	}
	if got := fx.use(span(20, 48), both, Late); got != id {
		t.Errorf("region %d became %d", id, got)
	}
}

func TestImpossibleRangesAreNoMemory(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	fx.use(span(0, 40), both, First)
	for _, r := range []mem.Range{
		{Start: base + 0x2000, End: base},                     // wrapped around
		{Start: base, End: base},                              // empty
		{Start: 0x1000, End: math.MaxUint64},                  // no end of whole pages
		{Start: 0x1000, End: 1<<63 + 0x1000},                  // half of the address space
		{Start: 0x1000, End: 1<<62 + 0x2000},                  // a quarter and more
		{Start: math.MaxUint64 - 10, End: math.MaxUint64 - 5}, // in the last page
	} {
		for call, f := range ways(fx.f) {
			if _, _, err := f(r, both); !errors.Is(err, mem.ErrOverflow) && !errors.Is(err, mem.ErrEmpty) {
				t.Errorf("%s of %#x to %#x: %v", call, uint64(r.Start), uint64(r.End), err)
			}
		}
		if _, ok := fx.f.IsRegistered(r, both); ok {
			t.Errorf("%#x to %#x is registered", uint64(r.Start), uint64(r.End))
		}
	}
	for _, r := range []mem.Range{{Start: base + 0x8000, End: base + 0x1000}, {Start: base + 0x3000, End: base + 0x3000}} {
		if err := fx.Invalidate(r); err != nil {
			t.Error(err)
		}
		fx.check()
	}
	fx.use(span(0, 40), both, Hit)
	for _, r := range []mem.Range{{Start: 0, End: math.MaxUint64}, {Start: base, End: math.MaxUint64},
		{Start: 0x1000, End: 1 << 62}} {
		if err := fx.Invalidate(r); err != nil {
			t.Error(err)
		}
		fx.check()
		fx.use(span(0, 40), both, First)
	}
}

// TestNoRangeIsTooLongToLookFor asks for ranges up to the longest that a request may have.
func TestNoRangeIsTooLongToLookFor(t *testing.T) {
	c, err := New(sim.New(sim.Options{}), Options{OnFault: func(f *fault.Fault) { t.Error(f) }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for n := uint64(mem.PageSize); n <= 1<<62; n *= 2 {
		for _, r := range []mem.Range{{Start: base, End: base + mem.Addr(n)},
			{Start: base + 1, End: base + 1 + mem.Addr(n)}} {
			if ref, _, err := c.Acquire(r, both); err == nil {
				c.Release(ref)
			} else if errors.Is(err, fault.Err) {
				t.Errorf("%v: %v", r, err)
			}
		}
		if err := c.Invalidate(mem.Range{Start: base, End: base + mem.Addr(n)}); err != nil {
			t.Error(err)
		}
	}
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
}
