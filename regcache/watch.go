package regcache

import (
	"slices"
	"sync/atomic"

	"pinwheel/internal/fault"
	"pinwheel/mem"
)

// Watcher reports changes of mappings; package vmwatch has the implementations. The cache
// watches a region from its first registration until it forgets it.
type Watcher interface {
	// Word returns a word outside the Go heap that moves before anyone can
	// rely on a change of a watched range. Read atomically, by every hit.
	Word() *uint64
	// Watch begins to watch r. It fails if it cannot notice changes of r, which is
	// then registered for one use at a time. The cache calls Pinned after the first
	// registration since Watch, which is not kept if that fails: nothing may tell
	// when memory of a device is freed. With verify, the word is not enough:
	// the cache calls Pinning and Pinned around each registration, and Unchanged at
	// each hit, before it looks at the word.
	Watch(r mem.Range) (token uint64, verify bool, err error)
	Pinning(token uint64)
	Pinned(token uint64) error
	Unchanged(token uint64) bool
	Unwatch(token uint64)
	// Drain calls drop with what changed since the last call, and returns the
	// value of the word that this accounts for. drop must not call the watcher.
	Drain(drop func(mem.Range)) (generation uint64)
}

// drainUnlocking deals with changed mappings, if the watcher's word has moved. After it, hits are
// possible again. It fails with ErrClosed, or with a fault of the watcher: then the next
// call drops everything, since nobody knows which registrations are still right.
func (c *Cache) drainUnlocking() error {
	if c.closed {
		return ErrClosed // and with it, perhaps, the watcher
	}
	if c.opts.Watcher == nil || c.tab.current() {
		return nil
	}
	err := fault.Contain(c.drain)
	c.changesLost = err != nil
	c.note(err)
	_ = c.reclaimUnlocking() // failures are counted in Stats.Leaked
	return err
}

// catchUp deals with changed mappings, and takes no lock if there are none.
func (c *Cache) catchUp() {
	if w := c.opts.Watcher; w == nil || atomic.LoadUint64(w.Word()) == c.drained.Load() {
		return
	}
	c.mu.Lock()
	defer c.unlock()
	if !c.changesLost { // or who needs a registration finds the fault again
		_ = c.drainUnlocking()
	}
}

// drain forgets the regions whose mappings changed, or all regions if the last Drain failed. It
// closes their entries before hits see that the changes are dealt with.
func (c *Cache) drain() error {
	generation := c.opts.Watcher.Drain(c.invalidate)
	if c.changesLost {
		c.invalidate(mem.Range{Start: 0, End: ^mem.Addr(0)})
	}
	atomic.StoreUint64(&c.tab.seen, generation)
	c.drained.Store(generation)
	return nil
}

// revalidateUnlocking asks the watcher, if that is necessary, whether a registered region still
// has the pages that were registered. If not, or if the watcher can't tell, the region becomes
// absent. It stays known and watched, because mostly it is the same buffer still.
func (c *Cache) revalidateUnlocking(l *Local, g *region) bool {
	if !g.verify {
		return true
	}
	slot, token := g.slot, g.token
	c.reopen(g)
	l.count(slot, 1) // keep it registered meanwhile
	same := false
	_ = c.withoutLock(func() error { // unlock tells of a fault
		same = c.opts.Watcher.Unchanged(token)
		return nil
	})
	// What was over by then has moved the word before.
	same = c.drainUnlocking() == nil && same
	l.count(slot, countMask)
	if c.bySlot[slot] != g || !g.known() { // it went meanwhile, and is retired under this slot
		c.reclaimSlotUnlocking(slot)
		return false
	}
	if !same {
		c.stats.Invalidated++
		if c.tryClose(g) {
			_ = c.releaseUnlocking(g) // a failure is counted in Stats.Leaked
		} else {
			_ = c.reshape(g, g.rng, g.access) // without a slot it is forgotten
		}
		_ = c.reclaimUnlocking() // likewise
	}
	return same
}

// Invalidate forgets every region that shares a page with r, whose mapping is about to change
// or has changed. Idle registrations are released before it returns. Those in use stay
// valid until they are released, but serve no other request. It returns the provider's errors.
func (c *Cache) Invalidate(r mem.Range) error {
	c.mu.Lock()
	defer c.unlock()
	c.invalidate(r)
	return c.reclaimUnlocking()
}

func (c *Cache) invalidate(r mem.Range) {
	if r.Empty() {
		return
	}
	r.Start &^= mem.Addr(c.tab.pageMask)
	if up := r.End + mem.Addr(c.tab.pageMask); up > r.End {
		r.End = up &^ mem.Addr(c.tab.pageMask)
	}
	for _, g := range slices.Backward(c.overlapping(r)) { // the heap of registered regions shrinks from its end
		c.forget(g)
		c.stats.Invalidated++
	}
	c.forgiveIn(r)
	c.everRegistered.remove(r)
}
