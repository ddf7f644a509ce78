package regcache

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// TestNoRequestIsServedByWhatWasRegisteredBeforeAChange: handles of the
// provider rise, so that a request that begins after a change must not get a
// handle given out before it. Half the ranges must be verified at every hit.
func TestNoRequestIsServedByWhatWasRegisteredBeforeAChange(t *testing.T) {
	testwait.Bound(t)
	const pages = 32
	p := newMortal()
	w := newWatcher(t)
	w.verifies = func(r mem.Range) bool { return r.Start >= span(pages/2, 1).Start }
	c, err := New(p, Options{Watcher: w, KnownRegions: 50})
	if err != nil {
		t.Fatal(err)
	}
	var changedAt [pages]atomic.Uint64 // the last handle given out before the page's last change
	var stop atomic.Bool
	var used atomic.Uint64 // ID of a region that was used lately
	var wg sync.WaitGroup
	for user := range 2 {
		wg.Go(func() {
			f, err := c.Thread()
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			rng := rand.New(rand.NewPCG(1, uint64(user)))
			for !stop.Load() && !t.Failed() {
				from := rng.IntN(pages)
				n := 1 + rng.IntN(min(6, pages-from))
				var before uint64
				for i := from; i < from+n; i++ {
					before = max(before, changedAt[i].Load())
				}
				r := span(uint64(from), uint64(n))
				ref, ok := f.IsRegistered(r, both)
				if !ok {
					if ref, _, err = f.Acquire(r, both); err != nil {
						t.Error(err)
						return
					}
				}
				if g := ref.Region(); g.Handle <= before || !p.lives(g) || !g.Range.Contains(r) {
					t.Errorf("%v was served by %+v; the last change came after %d", r, g, before)
				}
				used.Store(uint64(ref.ID()))
				f.Release(ref)
			}
		})
	}
	wg.Go(func() {
		rng := rand.New(rand.NewPCG(1, 99))
		for !stop.Load() && !t.Failed() {
			from := rng.IntN(pages)
			n := 1 + rng.IntN(min(3, pages-from))
			last := p.last.Load()
			w.change(span(uint64(from), uint64(n)))
			for i := from; i < from+n; i++ {
				changedAt[i].Store(last)
			}
			time.Sleep(time.Duration(rng.IntN(100)) * time.Microsecond)
		}
	})
	wg.Go(func() {
		for !stop.Load() && !t.Failed() {
			id := mem.RegionID(used.Load())
			err := errors.Join(c.Deregister(id), c.Register(id))
			if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
			runtime.Gosched()
		}
	})
	hasShownAll := func() bool {
		s := c.Stats()
		return s.Hits > 0 && s.Invalidated > 0 && s.HelperRegisters > 0
	}
	for end := time.Now().Add(500 * time.Millisecond); (time.Now().Before(end) || !hasShownAll()) && !t.Failed(); {
		time.Sleep(20 * time.Millisecond)
		if err := c.Verify(); err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if len(w.watched) != 0 {
		t.Errorf("still watched: %v", w.watched)
	}
	if s := c.Stats(); s.Pinned != (Usage{}) {
		t.Errorf("still pinned: %+v", s)
	}
}
