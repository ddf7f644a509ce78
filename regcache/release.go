package regcache

import (
	"errors"
	"runtime"

	"pinwheel/verbs"
)

// release deregisters a registration that is closed and has no references.
// mu is released meanwhile. The region becomes absent or, unknown, nothing.
func (c *Cache) release(g *region) error {
	g.state = draining
	c.drains++
	var err error
	c.unlocked(func() {
		err = c.provider.Deregister(g.mr)
		for busy := 0; errors.Is(err, verbs.ErrBusy) && busy < busyRetries; busy++ {
			runtime.Gosched()
			err = c.provider.Deregister(g.mr)
		}
	})
	c.drains--
	if err == nil {
		c.unreserve(g.rng)
	} else {
		c.stats.Leaked++ // still counted: the provider may hold the pages
	}
	if c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
	c.settle(g, absent)
	if g.known() {
		c.absent.push(g)
	} else {
		c.tab.retire(g.slot, false)
		c.freeSlot(g)
	}
	return err
}

// reap releases orphans and ends watches. mu is released meanwhile.
func (c *Cache) reap() error {
	var errs []error
	if tokens := c.tokens; len(tokens) > 0 {
		c.tokens = nil
		c.mu.Unlock()
		for _, token := range tokens {
			c.opts.Watcher.Unwatch(token)
		}
		c.mu.Lock()
	}
	for c.sift(); len(c.orphans) > 0; c.sift() {
		g := c.orphans[len(c.orphans)-1]
		c.orphans = c.orphans[:len(c.orphans)-1]
		errs = append(errs, c.release(g))
	}
	return errors.Join(errs...)
}

// lastDropped looks after a registration that is not known, when a reference was dropped.
func (c *Cache) lastDropped(slot uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkLast(slot)
}

// checkLast is lastDropped for callers with mu.
func (c *Cache) checkLast(slot uint32) {
	c.sift()
	g := c.bySlot[slot]
	if g != nil && !g.known() && g.state == registered && c.tab.references(slot) == 0 {
		c.release(g) // a failure is counted in Stats.Leaked
	}
}

// tryClose ends hits on a registered region; false, changing nothing, if it is in use.
func (c *Cache) tryClose(g *region) bool {
	if c.tab.references(g.slot) != 0 {
		return false
	}
	c.tab.close(g.slot, g.rng)
	c.tab.barrier()
	if c.tab.references(g.slot) != 0 {
		c.open(g)
		return false
	}
	c.lru.remove(g)
	g.state = draining
	return true
}
