package regcache

import (
	"sync/atomic"

	"pinwheel/internal/fault"
	"pinwheel/mem"
)

// Watcher tells that mappings changed; package vmwatch has the real ones.
// The cache watches a region from its first registration until it forgets it.
type Watcher interface {
	// Word returns a word outside the Go heap that moves before anyone can
	// rely on a change of a watched range. Read atomically, by every hit.
	Word() *uint64
	// Watch begins to watch r. An error means that changes of r cannot be
	// noticed: it is then registered for one use at a time. With verify, the
	// word is not enough: each registration is to be bracketed by Pinning and
	// Pinned, and each hit to be confirmed by Unchanged.
	Watch(r mem.Range) (token uint64, verify bool, err error)
	Pinning(token uint64)
	Pinned(token uint64) error
	Unchanged(token uint64) bool
	Unwatch(token uint64)
	// Drain calls drop with what changed since the last call, and returns the
	// value of the word that this accounts for. drop must not call the watcher.
	Drain(drop func(mem.Range)) (generation uint64)
}

// drainUnlocking deals with changed mappings, if the watcher's word has moved.
// After it, hits are possible again. It fails with ErrClosed, or with a fault of
// the watcher: then nobody knows which registrations are still right, and the
// next call finds out.
func (c *Cache) drainUnlocking() error {
	if c.closed {
		return ErrClosed // and with it, perhaps, the watcher
	}
	if c.opts.Watcher == nil || c.tab.generation() == c.tab.seen {
		return nil
	}
	err := fault.Contain(c.drain)
	c.changesLost = err != nil
	c.note(err)
	_ = c.reclaimUnlocking() // failures are counted in Stats.Leaked
	return err
}

// drain forgets what the watcher names, or everything if it failed to the last
// time. The entries are closed before hits see that the changes are dealt with.
func (c *Cache) drain() error {
	generation := c.opts.Watcher.Drain(c.invalidate)
	if c.changesLost {
		c.invalidate(mem.Range{Start: 0, End: ^mem.Addr(0)})
	}
	atomic.StoreUint64(&c.tab.seen, generation)
	return nil
}

// revalidateUnlocking asks the watcher whether a registered region is still what
// was registered, if it has to be asked. If not, or if the watcher can't tell, the
// region is absent: it stays known and watched, because mostly it is the same buffer still.
func (c *Cache) revalidateUnlocking(l *Local, g *region) bool {
	if !g.verify {
		return true
	}
	slot, token := g.slot, g.token
	l.count(slot, 1) // keep it registered meanwhile
	same := false
	_ = c.withoutLock(func() error { // unlock tells of a fault
		same = c.opts.Watcher.Unchanged(token)
		return nil
	})
	l.count(slot, countMask)
	if c.bySlot[slot] != g { // it went meanwhile, and is retired under this slot
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

// Invalidate forgets every region that shares a page with r, whose mapping
// changes or has changed. Idle registrations are released before it returns;
// what is in use stays valid until released but is not handed out again.
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
	var hit []*region
	c.index.overlapping(r, 0, 63, func(g *region) bool {
		hit = append(hit, g)
		return true
	})
	for _, g := range hit {
		c.forget(g)
		c.stats.Invalidated++
	}
	c.everRegistered.Remove(r)
}
