package regcache

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/fault"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// between is a provider and a watcher whose calls go through at, which may
// panic, fail or take its time.
type between struct {
	*sim.Provider
	*watcher
	at func(point string) error
}

func (b *between) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if err := b.at("register"); err != nil {
		return verbs.Region{}, err
	}
	return b.Provider.Register(r, a)
}

func (b *between) Deregister(g verbs.Region) error {
	if err := b.at("deregister"); err != nil {
		return err
	}
	return b.Provider.Deregister(g)
}

func (b *between) Watch(r mem.Range) (uint64, bool, error) {
	if err := b.at("watch"); err != nil {
		return 0, false, err
	}
	return b.watcher.Watch(r)
}

func (b *between) Unwatch(token uint64) {
	defer b.watcher.Unwatch(token)
	_ = b.at("unwatch")
}

func (b *between) Pinning(token uint64) {
	_ = b.at("pinning")
	b.watcher.Pinning(token)
}

func (b *between) Pinned(token uint64) error {
	if err := b.at("pinned"); err != nil {
		return err
	}
	return b.watcher.Pinned(token)
}

func (b *between) Unchanged(token uint64) bool {
	return b.at("unchanged") == nil && b.watcher.Unchanged(token)
}

func (b *between) Drain(drop func(mem.Range)) uint64 {
	// In the middle: some is dropped, and nobody knows what not.
	return b.watcher.Drain(func(r mem.Range) {
		drop(r)
		_ = b.at("drain")
	})
}

var points = []string{"register", "deregister", "watch", "unwatch", "pinning", "pinned", "unchanged", "drain"}

// seeded is a between one call of which goes wrong.
type seeded struct {
	between
	point string // the call
	nth   int64  // counted from 1
	calls atomic.Int64
}

func seed(t *testing.T, point string, nth int64, wrong func()) *seeded {
	s := &seeded{point: point, nth: nth}
	s.between = between{sim.New(sim.Options{}), newWatcher(t), func(point string) error {
		if point == s.point && s.calls.Add(1) == s.nth {
			wrong()
		}
		return nil
	}}
	return s
}

func panics() { panic("seeded fault") }

func (s *seeded) fired() bool { return s.calls.Load() >= s.nth }

// TestFaultAnywhereLeavesNothingRegistering puts a panic at every call that the
// cache makes, one at a time: nobody waits for ever, nothing stays pinned, and
// the cache goes on.
func TestFaultAnywhereLeavesNothingRegistering(t *testing.T) {
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			n := int64(1)
			for ; rehearse(t, seed(t, point, n, panics)); n++ {
				if t.Failed() {
					t.Fatalf("at call %d", n)
				}
			}
			if n < 3 {
				t.Errorf("the script reaches it %d times: the test shows too little", n-1)
			}
		})
	}
}

// rehearse plays a script over two caches of a group, and reports whether it
// came to the call that goes wrong.
func rehearse(t *testing.T, s *seeded) bool {
	s.watcher.verifies = func(r mem.Range) bool { return r.Start >= span(1000, 1).Start }
	var faults atomic.Int64
	group := NewGroup(40 * int64(mem.PageSize))
	c, err := New(s, Options{Watcher: s, Group: group, OnFault: func(*fault.Fault) { faults.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	other, err := New(s, Options{Group: group, OnFault: func(*fault.Fault) { faults.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		faults.Add(play(t, s, c, other))
	}()
	select {
	case <-ended:
	case <-time.After(testwait.Limit):
		stacks := make([]byte, 1<<16)
		t.Fatalf("hangs after a fault in call %d of %s: %+v\n%s", s.nth, s.point, c.Stats(),
			stacks[:runtime.Stack(stacks, true)])
	}
	if err := errors.Join(c.Verify(), other.Verify(), c.Close(), other.Close()); err != nil && !errors.Is(err, ErrFault) {
		t.Error(err)
	}
	if u := s.Provider.Usage(); u != (verbs.Usage{}) || group.Usage() != (Usage{}) {
		t.Errorf("%s %d: left %+v, in the group %+v, %+v", s.point, s.nth, u, group.Usage(), c.Stats())
	}
	if s.fired() && faults.Load() == 0 {
		t.Errorf("%s %d: nobody was told", s.point, s.nth)
	}
	return s.fired()
}

// play has all that can go wrong happen: hits and misses by two threads at a
// time, some of which wait for each other; changes, noticed and not; evictions in
// the cache and in the group; the helper. It returns how many calls returned faults.
func play(t *testing.T, s *seeded, c, other *Cache) (faults int64) {
	use := func(c *Cache, r mem.Range) {
		ref, _, err := c.Acquire(r, both)
		if err == nil {
			c.Release(ref)
		} else if !errors.Is(err, ErrFault) {
			t.Error(err)
		}
	}
	helped := func(did bool, err error) {
		if errors.Is(err, ErrFault) {
			faults++
		}
	}
	for _, at := range []uint64{0, 1000} { // notified, verified
		for range 2 {
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() { use(c, span(at, 16)) })
			}
			wg.Wait()
			use(c, span(at, 16))
			s.watcher.change(span(at, 1))
			use(c, span(at+32, 16))
			use(other, span(at, 16)) // evicts of both
			use(c, span(at, 16))
			ref, ok := c.IsRegistered(span(at, 8), both)
			_ = c.Invalidate(span(at, 1))
			if ok {
				c.Release(ref)
			}
			for _, id := range known(c) {
				helped(c.TryDeregister(id))
				helped(c.TryRegister(id))
			}
			if ref, _, err := c.shared.Register(span(at+64, 8), both); err == nil {
				c.Release(ref)
			}
			_ = c.SetLimits(Limits{Bytes: 16 * int64(mem.PageSize), Regions: 1})
			_ = c.SetLimits(Limits{Bytes: mem.Unlimited, Regions: mem.Unlimited})
		}
	}
	_, _ = c.Clean()
	return faults
}

func known(c *Cache) (ids []mem.RegionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.byID.all() {
		ids = append(ids, g.id)
	}
	slices.Sort(ids)
	return ids
}

// A callback that ends its goroutine, as t.FailNow does, is nothing to recover
// from: but others must not wait for it.
func TestCallThatDoesNotReturnLeavesNobodyWaiting(t *testing.T) {
	testwait.Bound(t)
	for _, point := range []string{"register", "deregister", "watch", "pinning", "pinned", "drain"} {
		s := seed(t, point, 1, runtime.Goexit)
		s.watcher.verify = point == "pinning" || point == "pinned"
		c, err := New(s, Options{Watcher: s})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			ref, _, err := c.Acquire(span(0, 16), both)
			if err != nil {
				t.Error(err)
			}
			s.watcher.change(span(0, 1))
			c.Release(ref)
			ref, _, err = c.Acquire(span(0, 16), both)
			if err != nil {
				t.Error(err)
			}
			c.Release(ref)
		})
		wg.Wait()
		ref, _, err := c.Acquire(span(0, 16), both)
		if err != nil {
			t.Errorf("%s: %v", point, err)
		} else {
			c.Release(ref)
		}
		if err := errors.Join(c.Verify(), c.Close()); err != nil {
			t.Errorf("%s: %v", point, err)
		}
		if u := s.Provider.Usage(); u.Regions != 0 {
			t.Errorf("%s: left %+v", point, u)
		}
	}
}

func TestWatcherThatFailedToTellLeavesNothingStale(t *testing.T) {
	s := seed(t, "drain", 1, panics)
	c, err := New(s, Options{Watcher: s})
	if err != nil {
		t.Fatal(err)
	}
	use := func(i uint64) (outcome Outcome, err error) {
		ref, outcome, err := c.Acquire(span(i, 16), both)
		if err == nil {
			c.Release(ref)
		}
		return outcome, err
	}
	for _, i := range []uint64{0, 100} {
		if _, err := use(i); err != nil {
			t.Fatal(err)
		}
	}
	s.watcher.change(span(0, 1))
	s.watcher.change(span(100, 1))
	if _, err := use(0); !errors.Is(err, ErrFault) {
		t.Errorf("the watcher panicked, and the cache says %v", err)
	}
	s.watcher.mu.Lock()
	s.watcher.pending = nil // lost with the panic
	s.watcher.mu.Unlock()
	if outcome, err := use(100); err != nil || outcome == Hit {
		t.Errorf("%v, %v: its change was never told of", outcome, err)
	}
	if err := errors.Join(c.Verify(), c.Close()); err != nil {
		t.Error(err)
	}
}

func TestFailedDeregistrationIsRepeatedByClose(t *testing.T) {
	p := sim.New(sim.Options{Fail: failTimes(sim.OpDeregister, 2)})
	c, err := New(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	ref, _, err := c.Acquire(span(0, 16), both)
	if err != nil {
		t.Fatal(err)
	}
	c.Release(ref)
	if err := c.Close(); err != nil || p.Usage().Regions != 0 {
		t.Errorf("Close: %v, left %+v", err, p.Usage())
	}
}

// failTimes makes the first n calls of one kind fail.
func failTimes(op sim.Op, n int64) func(sim.Op, mem.Range) error {
	var calls atomic.Int64
	return func(o sim.Op, r mem.Range) error {
		if o == op && calls.Add(1) <= n {
			return fmt.Errorf("seeded: %w", verbs.ErrNotPermitted)
		}
		return nil
	}
}
