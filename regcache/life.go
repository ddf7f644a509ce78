package regcache

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// enter makes a region without slot findable, absent; without a free slot it is forgotten.
func (c *Cache) enter(g *region) error {
	slot, ok := c.tab.allocate()
	if !ok {
		delete(c.byID, g.id)
		c.gone.push(g.id)
		g.id = 0
		return c.limitError(g.rng, verbs.ErrRegions, true)
	}
	g.slot, g.state = slot, absent
	g.packed = packAccess(g.access)
	c.setSlot(slot, g)
	c.tab.describe(slot, g.id, verbs.Region{})
	c.tab.insert(slot, g.rng, g.packed)
	c.index.add(g)
	c.absent.push(g)
	return nil
}

func (c *Cache) setSlot(slot uint32, g *region) {
	if int(slot) == len(c.bySlot) {
		c.bySlot = append(c.bySlot, nil)
	}
	c.bySlot[slot] = g
}

// leave is the opposite of enter, for a region in any state. A registration
// that the region has lives on under its slot until it is released.
func (c *Cache) leave(g *region) {
	if g.state == registered {
		c.tab.close(g.slot, g.rng)
	}
	c.tab.erase(g.slot, g.rng)
	c.index.remove(g)
	switch g.state {
	case absent:
		c.absent.remove(g)
		c.freeSlot(g)
	case registered:
		c.lru.remove(g)
		old := &region{rng: g.rng, access: g.access, slot: g.slot, state: registered, mr: g.mr, heapAt: -1}
		c.bySlot[g.slot] = old
		c.tab.retire(old.slot, true)
		c.left = append(c.left, old)
		g.state = absent
	case registering, draining: // whoever called the provider frees the slot
		c.tab.retire(g.slot, true)
		return
	}
	c.unwatch(g)
}

// sift tells, with one barrier for all, which of the registrations that left
// since the last time are in use; the others become orphans. Nobody may look at
// the references of one that left before.
func (c *Cache) sift() {
	if len(c.left) > 0 {
		c.tab.barrier()
		for _, g := range c.left {
			c.orphanIfLeft(g)
		}
		clear(c.left)
		c.left = c.left[:0]
	}
	if c.tab.hasUndone() {
		c.tab.forgetUndone()
		for _, g := range c.bySlot {
			c.orphanIfLeft(g)
		}
	}
}

func (c *Cache) orphanIfLeft(g *region) {
	if c.isLeft(g) {
		g.state = draining
		c.orphans = append(c.orphans, g)
	}
}

// unwatch ends the watch of a region that leaves, at the next reap.
func (c *Cache) unwatch(g *region) {
	if g.watched {
		c.tokens = append(c.tokens, g.token)
		g.watched, g.verify = false, false
	}
}

// freeSlot ends a registration that is not known, or an absent region.
func (c *Cache) freeSlot(g *region) {
	c.unwatch(g)
	c.bySlot[g.slot] = nil
	c.tab.release(g.slot)
}

// forget drops a known region for good; nothing if it is gone already.
func (c *Cache) forget(g *region) {
	if !g.known() {
		return
	}
	c.leave(g)
	delete(c.byID, g.id)
	c.gone.push(g.id)
	g.id = 0
}

// reshape gives a known region, absent or registered, another range and
// rights. Its ID stays; a registration that is in use lives on until released.
func (c *Cache) reshape(g *region, r mem.Range, a verbs.Access) error {
	c.leave(g)
	g.rng, g.access, g.once = r, a, false
	return c.enter(g)
}
