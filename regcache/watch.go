package regcache

import (
	"sync/atomic"

	"pinwheel/mem"
)

// Watcher tells that mappings changed. Watch and Unwatch come in pairs and
// may overlap: a page is watched while any range that holds it is.
type Watcher interface {
	// Watch begins to watch r. An error means that changes of r cannot be
	// noticed: it is then registered for one use at a time.
	Watch(r mem.Range) error
	Unwatch(r mem.Range)
	// Word returns a word outside the Go heap that moves before the mapping
	// of a watched range changes. Read atomically, by every hit.
	Word() *uint64
	// Drain calls f with what changed since the last call. overrun means that
	// it does not know all of it. It must not call the cache.
	Drain(f func(mem.Range)) (overrun bool)
}

// drain deals with changed mappings, if the watcher's word has moved. After
// it, hits are possible again. mu is released while registrations are.
func (c *Cache) drain() {
	if c.opts.Watcher == nil {
		return
	}
	now := atomic.LoadUint64(c.tab.gen)
	if now == c.tab.seen {
		return
	}
	if c.opts.Watcher.Drain(c.invalidate) {
		c.invalidate(mem.Range{End: ^mem.Addr(0)})
	}
	// What changed after the load above moves the word again.
	atomic.StoreUint64(&c.tab.seen, now)
	c.reap()
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
