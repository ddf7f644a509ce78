package regcache

import (
	"sync/atomic"

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

// drain deals with changed mappings, if the watcher's word has moved. After
// it, hits are possible again. mu is released while registrations are.
func (c *Cache) drain() {
	if c.opts.Watcher == nil || atomic.LoadUint64(c.tab.gen) == c.tab.seen {
		return
	}
	// The entries are closed before hits see that the changes are dealt with.
	generation := c.opts.Watcher.Drain(c.invalidate)
	atomic.StoreUint64(&c.tab.seen, generation)
	c.reap() // failures are counted in Stats.Leaked
}

// confirm asks the watcher whether a registered region is still what was
// registered, if it has to be asked. If not, or if the watcher can't tell, the
// region is absent: it stays known and watched, because mostly it is the same buffer still.
// mu is released while the watcher is asked.
func (c *Cache) confirm(f *Front, g *region) bool {
	if !g.verify {
		return true
	}
	slot, token := g.slot, g.token
	f.count(slot, 1) // keep it registered meanwhile
	c.mu.Unlock()
	same := c.opts.Watcher.Unchanged(token)
	c.mu.Lock()
	f.count(slot, countMask)
	if c.bySlot[slot] != g { // it went meanwhile, and is retired under this slot
		c.checkLast(slot)
		return false
	}
	if !same {
		c.stats.Invalidated++
		if c.tryClose(g) {
			c.release(g) // a failure is counted in Stats.Leaked
		} else {
			_ = c.reshape(g, g.rng, g.access) // without a slot it is forgotten
		}
		c.reap()
	}
	return same
}

// Invalidate forgets every region that shares a page with r, whose mapping
// changes or has changed. Idle registrations are released before it returns;
// what is in use stays valid until released but is not handed out again.
func (c *Cache) Invalidate(r mem.Range) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalidate(r)
	return c.reap()
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
	c.seen.remove(r)
}
