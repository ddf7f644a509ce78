package regcache

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// insert makes a region findable, as absent, under a slot of its own. It fails if no slot is
// free; the region is then forgotten.
func (c *Cache) insert(g *region) error {
	slot, ok := c.tab.allocate()
	if !ok {
		c.byID.remove(g)
		c.forgotten.push(g.id)
		g.id = 0
		return c.limitError(g.rng, verbs.ErrRegions, true)
	}
	g.slot, g.state = slot, absent
	c.setSlot(slot, g)
	c.tab.describe(slot, g.id, verbs.Region{})
	c.tab.insert(slot, g.rng, packAccess(g.access))
	c.beginAbsence(g)
	return nil
}

// beginAbsence makes a known region one that is not registered. A C thread may register it by itself if the word of the
// watcher is enough to tell whether the mapping has changed since.
func (c *Cache) beginAbsence(g *region) {
	c.absent.push(g)
	c.tab.offer(g.slot, !g.verify)
}

// endAbsence is the opposite.
func (c *Cache) endAbsence(g *region) {
	c.absent.remove(g)
	c.tab.offer(g.slot, false)
}

// moveTo gives an absent region a slot that a C thread has registered it under, and counts a reference to.
func (c *Cache) moveTo(g *region, slot uint32) {
	c.tab.erase(g.slot, g.rng)
	c.endAbsence(g)
	c.bySlot[g.slot] = nil
	c.tab.release(g.slot)
	g.slot, g.state = slot, registering
	c.setSlot(slot, g)
	c.tab.insert(slot, g.rng, packAccess(g.access))
}

func (c *Cache) setSlot(slot uint32, g *region) {
	for int(slot) >= len(c.bySlot) { // those between are granted
		c.bySlot = append(roomForOne(c.bySlot), nil)
	}
	c.bySlot[slot] = g
}

// remove is the opposite of insert, for a region in any state, forgotten or not. A registration
// that the region has is retired: it keeps the slot until it is released.
func (c *Cache) remove(g *region) {
	c.tab.erase(g.slot, g.rng)
	switch g.state {
	case absent:
		c.endAbsence(g)
		c.freeSlot(g)
	case registered:
		c.lru.remove(g)
		g.closed = false
		old := g
		if g.known() { // it goes on without the registration
			old = &region{rng: g.rng, access: g.access, slot: g.slot, state: registered, heapIndex: -1}
			c.bySlot[g.slot] = old
			g.state = absent
		}
		c.tab.retire(old.slot, true)
		c.retired = append(c.retired, old)
	case registering, draining: // whoever called the provider frees the slot
		c.tab.retire(g.slot, true)
		return
	}
	c.unwatch(g)
}

// classifyRetired finds, with one barrier for all, which of the registrations retired
// since the last time have no reference: they become reclaimable. Before that, the
// references of a retired registration must not be looked at.
func (c *Cache) classifyRetired() {
	if len(c.retired) > 0 {
		c.tab.barrier()
		for _, g := range c.retired {
			c.classify(g)
		}
		clear(c.retired)
		c.retired = c.retired[:0]
	}
	if c.tab.hasUndone() {
		c.tab.forgetUndone()
		for _, g := range c.bySlot {
			c.classify(g)
		}
	}
}

func (c *Cache) classify(g *region) {
	if c.isReclaimable(g) {
		g.state = draining
		c.reclaimable = append(c.reclaimable, g)
	}
}

// unwatch has the watch of a region that is removed ended by the next reclaim.
func (c *Cache) unwatch(g *region) {
	if g.watched {
		c.endedWatches = append(c.endedWatches, g.token)
		g.watched, g.verify, g.accepted = false, false, false
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
	c.byID.remove(g)
	c.forgotten.push(g.id)
	g.id = 0
	c.remove(g)
}

// reshape gives a known region, absent or registered, another range and
// rights. Its ID stays; a registration that is in use lives on until released.
func (c *Cache) reshape(g *region, r mem.Range, a verbs.Access) error {
	c.remove(g)
	g.rng, g.access, g.wasRegistered = r, a, false
	return c.insert(g)
}
