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
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// mortal is a provider that knows which of its registrations live.
type mortal struct {
	*sim.Provider
	dead []atomic.Bool // by handle, modulo its length
	last atomic.Uint64
}

func newMortal() *mortal {
	return &mortal{Provider: sim.New(sim.Options{}), dead: make([]atomic.Bool, 1<<16)}
}

func (p *mortal) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	h := p.last.Add(1)
	p.dead[h%uint64(len(p.dead))].Store(false)
	return verbs.Region{Range: r, Access: a, Handle: h, LKey: uint32(h)}, nil
}

func (p *mortal) Deregister(g verbs.Region) error {
	p.dead[g.Handle%uint64(len(p.dead))].Store(true)
	return nil
}

func (p *mortal) lives(g verbs.Region) bool { return !p.dead[g.Handle%uint64(len(p.dead))].Load() }

// withLocal returns a goroutine of a test that calls f with a Local of its own.
func withLocal(t *testing.T, c *Cache, f func(*Local)) func() {
	return func() {
		l, err := c.Thread()
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Close()
		f(l)
	}
}

// verifyAndClose ends a cache that must be in order.
func verifyAndClose(t *testing.T, c *Cache) {
	t.Helper()
	if err := errors.Join(c.Verify(), c.Close()); err != nil {
		t.Error(err)
	}
}

// oneRegion returns a cache over a mortal provider, and the ID of the region of span(0, 16), which is registered.
func oneRegion(t *testing.T, p *mortal) (c *Cache, id mem.RegionID) {
	t.Helper()
	c, err := New(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ref, _, err := c.Acquire(span(0, 16), both)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Release(ref)
	return c, ref.ID()
}

// TestHitAndDeregistrationNeverBothSucceed is the race that the writer's
// barrier decides: a hit counts its reference and then looks at the entry, a
// deregistration closes the entry and then looks at the references. Without
// the barrier this usually fails within a second, on two processors.
func TestHitAndDeregistrationNeverBothSucceed(t *testing.T) {
	testwait.Bound(t)
	p := newMortal()
	c, id := oneRegion(t, p)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(withLocal(t, c, func(f *Local) {
		for !stop.Load() && !t.Failed() {
			for range 1000 {
				ref, ok := f.IsRegistered(span(0, 16), both)
				if ok {
					if !p.lives(ref.Region()) {
						t.Error("a reference to a registration that is gone")
					}
					f.Release(ref)
				}
				ref, _, err := f.Acquire(span(0, 16), both)
				if err != nil {
					t.Error(err)
					return
				}
				if g := ref.Region(); !p.lives(g) || g.LKey != ref.LKey() {
					t.Errorf("a reference to a registration that is gone, or to another: %+v, key %d", g, ref.LKey())
				}
				f.Release(ref)
			}
		}
	}))
	released := 0
	for end := time.Now().Add(500 * time.Millisecond); (time.Now().Before(end) || released == 0) && !t.Failed(); {
		for range 100 {
			c.CloseIdle([]mem.RegionID{id})
			if c.Deregister(id) == nil {
				released++
			}
			if err := c.Register(id); err != nil {
				t.Error(err)
			}
		}
	}
	stop.Store(true)
	wg.Wait()
	verifyAndClose(t, c)
}

// TestReferencesMayBeDroppedByOtherThreads hands references from one Local to
// another while the region is deregistered whenever possible.
func TestReferencesMayBeDroppedByOtherThreads(t *testing.T) {
	testwait.Bound(t)
	p := newMortal()
	c, err := New(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	parcels := make(chan Ref, 16)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(parcels)
		f, err := c.Thread()
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		for i := range 20000 {
			ref, _, err := f.Acquire(span(uint64(i%3)*100, 16), both)
			if err != nil {
				t.Error(err)
				return
			}
			parcels <- ref
		}
	})
	wg.Go(withLocal(t, c, func(f *Local) {
		for ref := range parcels {
			if !p.lives(ref.Region()) {
				t.Error("deregistered while in use")
			}
			f.Release(ref)
		}
	}))
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for id := mem.RegionID(1); ; id = id%3 + 1 {
		select {
		case <-done:
		default:
			c.CloseIdle([]mem.RegionID{1, 2, 3})
			c.Deregister(id) // in use most of the time
			c.Invalidate(span(200, 1))
			continue
		}
		break
	}
	if n, err := c.Clean(); err != nil || c.Stats().Pinned != (Usage{}) {
		t.Errorf("clean: %d, %v; %+v", n, err, c.Stats())
	}
	verifyAndClose(t, c)
}

// TestGrowthOfTheTableDoesNotStopHits adds regions until every area has
// grown several times, while another thread must only ever hit.
func TestGrowthOfTheTableDoesNotStopHits(t *testing.T) {
	testwait.Bound(t)
	c, _ := oneRegion(t, newMortal())
	var stop atomic.Bool
	var hits uint64
	var wg sync.WaitGroup
	wg.Go(withLocal(t, c, func(f *Local) {
		for !stop.Load() || hits == 0 {
			ref, outcome, err := f.Acquire(span(0, 16), both)
			if err != nil || outcome != Hit {
				t.Errorf("%v, %v", outcome, err)
				return
			}
			hits++
			f.Release(ref)
		}
	}))
	before := c.tab.areas
	for i := range uint64(5000) {
		ref, _, err := c.Acquire(span(100+20*i, 16), both)
		if err != nil {
			t.Fatal(err)
		}
		c.Release(ref)
	}
	stop.Store(true)
	wg.Wait()
	for i, b := range c.tab.areas {
		if b.places < 8*before[i].places {
			t.Errorf("area %d grew from %d to %d places: the test shows too little", i, before[i].places, b.places)
		}
	}
	verifyAndClose(t, c)
}

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
		wg.Go(withLocal(t, c, func(f *Local) {
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
					var err error
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
		}))
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
