package regcache

import (
	"context"
	"errors"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// prepare has the fixture prepare r and returns what was touched for that, with the error.
func (fx *fixture) prepare(ctx context.Context, r mem.Range, touched func(mem.Range) error) (all []mem.Range, err error) {
	err = fx.Prepare(ctx, r, both, func(r mem.Range) error {
		all = append(all, r)
		if touched == nil {
			return nil
		}
		return touched(r)
	})
	fx.check()
	return all, err
}

// nothing requires that nothing is registered.
func (fx *fixture) nothing() {
	fx.Helper()
	if u := fx.p.Usage(); u != (verbs.Usage{}) || fx.Stats().Pinned != (Usage{}) {
		fx.Errorf("%+v is registered, the cache says %v", u, fx.Stats().Pinned)
	}
}

func TestPreparedMemoryIsTouchedOnceThenKeptForHits(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	registered := func(mem.Range) error {
		if u := fx.p.Usage(); u.Regions != 0 {
			t.Error("it is registered before it is touched")
		}
		if n := fx.Pinned().Bytes; n != int64(span(0, 16).Len()) {
			t.Errorf("room for %d bytes is reserved meanwhile", n)
		}
		return nil
	}
	if all, err := fx.prepare(t.Context(), span(0, 16), registered); err != nil || len(all) != 1 || all[0] != span(0, 16) {
		t.Fatalf("touched %v: %v", all, err)
	}
	if s := fx.Stats(); s.First+s.Hits+s.Late+s.Waited != 0 {
		t.Errorf("it counts as a use: %+v", s)
	}
	if all, err := fx.prepare(t.Context(), span(0, 16), nil); err != nil || len(all) != 0 {
		t.Errorf("once more: touched %v: %v", all, err)
	}
	id := fx.use(span(0, 16), both, Hit)
	fx.use(span(3, 1), both, Hit)
	if err := fx.Deregister(id); err != nil { // no reference is left
		t.Error(err)
	}
}

func TestPrepareBeyondALimitTouchesNothing(t *testing.T) {
	limited := &fakeShare{own: 8, most: 8}
	g := NewGroup(mem.Unlimited)
	g.SetShare(limited)
	size := func(pages int64) int64 { return pages * int64(mem.PageSize) }
	for name, o := range map[string]struct {
		sim  sim.Options
		opts Options
		want error
	}{
		"of the domain":   {sim.Options{}, Options{MaxBytes: size(8)}, verbs.ErrPinnedMemory},
		"of the process":  {sim.Options{}, Options{Group: NewGroup(size(8))}, verbs.ErrPinnedMemory},
		"of the node":     {sim.Options{}, Options{Group: g}, verbs.ErrPinnedMemory},
		"of the provider": {sim.Options{Limits: verbs.Limits{MaxPinnedBytes: size(8)}}, Options{}, verbs.ErrPinnedMemory},
		"of a region":     {sim.Options{Limits: verbs.Limits{MaxRegionBytes: size(8)}}, Options{}, verbs.ErrRegionSize},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, o.sim, o.opts)
			if all, err := fx.prepare(t.Context(), span(0, 9), nil); !errors.Is(err, o.want) || len(all) != 0 {
				t.Errorf("touched %v: %v", all, err)
			}
			fx.nothing()
			if _, err := fx.prepare(t.Context(), span(0, 8), nil); err != nil {
				t.Errorf("what fits: %v", err)
			}
		})
	}
}

// Room is reserved before anything is touched. What is in use leaves none.
func TestPrepareEvictsBeforeItTouches(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{MaxBytes: int64(span(0, 16).Len())})
	fx.use(span(100, 16), both, First)
	evicted := func(mem.Range) error {
		if fx.p.Usage().Regions != 0 {
			t.Error("touched before there is room")
		}
		return nil
	}
	if _, err := fx.prepare(t.Context(), span(0, 16), evicted); err != nil {
		t.Fatal(err)
	}
	held := fx.get(span(0, 16), both, Hit)
	if all, err := fx.prepare(t.Context(), span(100, 16), nil); !errors.Is(err, verbs.ErrPinnedMemory) || len(all) != 0 {
		t.Errorf("with all in use: touched %v: %v", all, err)
	}
	fx.put(held)
}

func TestPrepareThatFailsOrIsCancelledLeavesNothing(t *testing.T) {
	broken := errors.New("broken")
	faults := sim.Failures{Register: []error{verbs.ErrNotMapped}}
	for name, step := range map[string]func(fx *fixture, ctx context.Context, cancel func()) error{
		"cancelled before": func(fx *fixture, ctx context.Context, cancel func()) error {
			cancel()
			all, err := fx.prepare(ctx, span(0, 16), nil)
			if len(all) > 0 {
				t.Error("touched")
			}
			return err
		},
		"cancelled while touching": func(fx *fixture, ctx context.Context, cancel func()) error {
			_, err := fx.prepare(ctx, span(0, 16), func(mem.Range) error { cancel(); return ctx.Err() })
			return err
		},
		"touching fails": func(fx *fixture, ctx context.Context, _ func()) error {
			_, err := fx.prepare(ctx, span(0, 16), func(mem.Range) error { return broken })
			return err
		},
		"touching panics": func(fx *fixture, ctx context.Context, _ func()) error {
			_, err := fx.prepare(ctx, span(0, 16), func(mem.Range) error { panics(); return nil })
			return err
		},
	} {
		want := map[string]error{"touching fails": broken, "touching panics": ErrFault}[name]
		if want == nil {
			want = context.Canceled
		}
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, sim.Options{}, Options{})
			ctx, cancel := context.WithCancel(t.Context())
			if err := step(fx, ctx, cancel); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
			fx.nothing()
			fx.use(span(0, 16), both, First)
		})
	}
	t.Run("registering fails", func(t *testing.T) {
		fx := newFixture(t, sim.Options{Fail: faults.Fail}, Options{})
		if _, err := fx.prepare(t.Context(), span(0, 16), nil); !errors.Is(err, verbs.ErrNotMapped) {
			t.Error(err)
		}
		fx.nothing()
	})
}

func TestPrepareCancelledWhileItRegistersDeregistersAgain(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	fx := newFixture(t, sim.Options{Fail: func(sim.Op, mem.Range) error { cancel(); return nil }}, Options{})
	if _, err := fx.prepare(ctx, span(0, 16), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	fx.nothing()
	fx.use(span(0, 16), both, Late)
}

// Somebody who needs the memory meanwhile waits for it. A second Prepare that is cancelled does not.
func TestUsesWaitForWhatIsBeingPrepared(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	touching, goOn := make(chan struct{}), make(chan struct{})
	prepared := make(chan error)
	go func() {
		prepared <- fx.Prepare(t.Context(), span(0, 16), both, func(mem.Range) error {
			close(touching)
			<-goOn
			return nil
		})
	}()
	<-touching
	if ref, _, err := fx.Acquire(span(100, 4), both); err != nil { // others go on
		t.Error(err)
	} else {
		fx.Release(ref)
	}
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() {
		second <- fx.Prepare(ctx, span(0, 16), both, func(mem.Range) error { return nil })
	}()
	used := make(chan Outcome)
	go func() {
		ref, outcome, err := fx.Acquire(span(0, 16), both)
		if err != nil {
			t.Error(err)
		} else {
			fx.Release(ref)
		}
		used <- outcome
	}()
	testwait.Until(t, "somebody waits", func() bool {
		fx.mu.Lock()
		defer fx.mu.Unlock()
		for g := range fx.byID.all() {
			if g.rng == span(0, 16) {
				return g.done != nil
			}
		}
		return false
	})
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(goOn)
	if err := <-prepared; err != nil {
		t.Error(err)
	}
	if o := <-used; o != Waited && o != Hit { // Hit: it came after the registration
		t.Error(o)
	}
}

func TestMemoryUnmappedWhileItIsPreparedIsNotRegistered(t *testing.T) {
	w := newWatcher(t)
	fx := newFixture(t, sim.Options{}, Options{Watcher: w})
	gone := verbs.ErrNotMapped
	_, err := fx.prepare(t.Context(), span(0, 16), func(r mem.Range) error {
		w.change(span(3, 1))
		return gone
	})
	if !errors.Is(err, gone) {
		t.Error(err)
	}
	fx.nothing()
	tries := 0
	all, err := fx.prepare(t.Context(), span(0, 16), func(mem.Range) error { // another mapping took its place
		if tries++; tries == 1 {
			w.change(span(3, 1))
		}
		return nil
	})
	if err != nil || len(all) != 2 {
		t.Errorf("touched %v: %v", all, err)
	}
	fx.use(span(0, 16), both, Hit)
}

func TestPrepareSaysWhatIsNotKept(t *testing.T) {
	w := newWatcher(t)
	w.foreign = func(r mem.Range) bool { return r.Overlaps(span(0, 16)) }
	fx := newFixture(t, sim.Options{}, Options{Watcher: w})
	for range 2 {
		if _, err := fx.prepare(t.Context(), span(0, 16), nil); !errors.Is(err, ErrNotKept) {
			t.Error(err)
		}
		fx.nothing()
	}
	err := fx.Prepare(t.Context(), span(50, 4), 1<<7, func(mem.Range) error { t.Error("touched"); return nil })
	if !errors.Is(err, ErrNotKept) {
		t.Error(err)
	}
}

func TestPrepareOfNoMemoryAndOnAClosedCacheFails(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	if _, err := fx.prepare(t.Context(), mem.Range{Start: base, End: base}, nil); !errors.Is(err, mem.ErrEmpty) {
		t.Error(err)
	}
	if err := fx.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := fx.prepare(t.Context(), span(0, 1), nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// What a larger region that stands for the request has beyond it may be unmapped by now.
func TestPrepareFallsBackToWhatWasAskedFor(t *testing.T) {
	fx := newFixture(t, sim.Options{}, Options{})
	id := fx.use(span(0, 16), both, First)
	if err := fx.Deregister(id); err != nil {
		t.Fatal(err)
	}
	all, err := fx.prepare(t.Context(), span(0, 10), func(r mem.Range) error {
		if r != span(0, 10) {
			return verbs.ErrNotMapped
		}
		return nil
	})
	if err != nil || len(all) != 2 || all[0] != span(0, 16) || all[1] != span(0, 10) {
		t.Errorf("touched %v: %v", all, err)
	}
}
