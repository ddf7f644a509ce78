package regcache

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs/sim"
)

// A hit counts its reference, is preempted, and takes the count back after the
// entry was closed for good: the writer saw the count, and has left the region to
// whoever drops the last one.
func TestCountThatIsTakenBackMayBeTheLast(t *testing.T) {
	for name, begin := range map[string]func(fx *fixture, late *Local) (slot uint32){
		"region": func(fx *fixture, late *Local) uint32 {
			fx.use(span(0, 16), both, First)
			late.count(0, 1)
			fx.invalidate(span(0, 16))
			return 0
		},
		"once": func(fx *fixture, late *Local) uint32 {
			ref, _, err := fx.f.Register(span(0, 16), both)
			if err != nil {
				fx.Fatal(err)
			}
			late.count(0, 1)
			fx.f.Release(ref)
			return 0
		},
		"slot of an earlier region": func(fx *fixture, late *Local) uint32 {
			fx.use(span(0, 16), both, First)
			fx.invalidate(span(0, 16))
			late.count(0, 1) // it still means the region that has gone
			fx.use(span(100, 16), both, First)
			fx.invalidate(span(100, 16))
			return 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, sim.Options{}, Options{})
			late, err := fx.Thread()
			if err != nil {
				t.Fatal(err)
			}
			defer late.Close()
			slot := begin(fx, late)
			if n := fx.Stats().Lingering; n != 1 {
				t.Fatalf("%d registrations linger: the test shows nothing", n)
			}
			late.undo(slot)
			if s := fx.Stats(); s.Lingering != 0 || s.Pinned != (Usage{}) {
				t.Errorf("left for ever: %+v", s)
			}
		})
	}
}

// The same, where others still use the registration that is in the slot.
func TestCountThatIsTakenBackReleasesNothingInUse(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	late, err := fx.Thread()
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	ref := fx.get(span(0, 16), both, First)
	late.count(0, 1)
	fx.invalidate(span(0, 16))
	late.undo(0)
	if s := fx.Stats(); s.Lingering != 1 || s.Pinned.Regions != 1 {
		t.Errorf("in use: %+v", s)
	}
	fx.put(ref)
	if s := fx.Stats(); s.Lingering != 0 || s.Pinned != (Usage{}) {
		t.Errorf("left for ever: %+v", s)
	}
}

func (fx *fixture) invalidate(r mem.Range) {
	fx.Helper()
	if err := fx.Invalidate(r); err != nil {
		fx.Error(err)
	}
}

// invalidations is how many the race gets; with PINWHEEL_SOAK, as many as it takes
// to believe it.
func invalidations() int64 {
	if os.Getenv("PINWHEEL_SOAK") != "" {
		return 2_000_000
	}
	return 200_000
}

// TestSoakInvalidationsUnderHitsLeaveNothingRegistered has threads hit, in a
// region and inside of it, what others invalidate.
func TestSoakInvalidationsUnderHitsLeaveNothingRegistered(t *testing.T) {
	testwait.Bound(t)
	// More threads than processors: the kernel preempts hits anywhere.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8 * runtime.NumCPU()))
	p := sim.New(sim.Options{})
	c, err := New(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var left atomic.Int64 // invalidations to go, at most
	left.Store(invalidations())
	end := time.Now().Add(10 * time.Minute)
	var wg sync.WaitGroup
	for i := range 16 {
		f, err := c.Thread()
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				for range rng.IntN(60) {
					r := span(rng.Uint64N(2)*100, 16)
					if rng.IntN(7) == 0 {
						r.Start, r.End = r.Start+4096, r.End-4096
					}
					ref, _, err := f.Acquire(r, both)
					if err != nil {
						t.Error(err)
						return
					}
					f.Release(ref)
				}
				if err := c.Invalidate(span(rng.Uint64N(2)*100, 16)); err != nil {
					t.Error(err)
				}
				if t.Failed() || time.Now().After(end) {
					t.Errorf("ended early: %+v", c.Stats())
					return
				}
			}
		})
	}
	wg.Wait()
	s := c.Stats()
	t.Logf("%d invalidations, %d hits: %d left", s.Invalidated, s.Hits, s.Lingering)
	if _, err := c.Clean(); err != nil || s.Lingering != 0 || c.Stats().Pinned != (Usage{}) {
		t.Error(fmt.Errorf("left for ever: %+v, %w", s, err))
	}
	if err := c.Verify(); err != nil {
		t.Error(err)
	}
	if err := c.Close(); err != nil || p.Usage().Regions != 0 {
		t.Errorf("Close: %v, left %+v", err, p.Usage())
	}
}
