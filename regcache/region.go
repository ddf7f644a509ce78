package regcache

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// state is where a region is in its life.
type state uint8

const (
	absent      state = iota // known, not registered
	registering              // a provider call is under way
	registered
	draining // no reference and no way to get one; a provider call is under way
)

var stateNames = [...]string{"absent", "registering", "registered", "draining"}

func (s state) String() string { return stateNames[s] }

// region is a known region, or a registration that is known no longer and
// lives until its last reference is dropped. All fields are protected by
// Cache.mu. The table describes the registration, under the slot.
type region struct {
	id            mem.RegionID // 0 if not known
	rng           mem.Range    // page-aligned
	access        verbs.Access
	slot          uint32
	heapIndex     int32 // position in Cache.lru; -1 outside
	state         state
	watched       bool // the watcher gave token, to be given back
	verify        bool // the watcher must revalidate each hit: never open in the table
	accepted      bool // the watcher has accepted a registration of it since it gave token
	closed        bool // registered, but hits on it have ended, and nobody has a reference
	wasRegistered bool // with its present range, which was good at least once
	token         uint64
	absent        links         // its place in Cache.absent
	done          chan struct{} // closed when registering or draining ends; made by who waits
}

func (g *region) known() bool { return g.id != 0 }

// inTransition reports whether a provider call for g is under way.
func (g *region) inTransition() bool { return g.state == registering || g.state == draining }

func (g *region) bytes() int64 { return int64(g.rng.Len()) }

// before orders regions by class, then address.
func (g *region) before(o *region) bool {
	if a, b := class(g.rng.Len()), class(o.rng.Len()); a != b {
		return a < b
	}
	if g.rng.Start != o.rng.Start {
		return g.rng.Start < o.rng.Start
	}
	if g.rng.End != o.rng.End {
		return g.rng.End < o.rng.End
	}
	return g.id < o.id
}

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
	c.absent.push(g)
	return nil
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
		c.absent.remove(g)
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

// everRegistered says which pages were registered since they were mapped, and with which rights: tells First from Late.
// It has an entry for all rights that ever came, with the pages that were registered with these and perhaps more.
type everRegistered []everWith

type everWith struct {
	access verbs.Access
	pages  mem.Set
}

// with returns the pages that were registered with the rights a.
func (e *everRegistered) with(a verbs.Access) *mem.Set {
	fresh := everWith{access: a}
	for i := range *e {
		w := &(*e)[i]
		switch {
		case w.access == a:
			return &w.pages
		case w.access.Includes(a):
			for r := range w.pages.All() {
				fresh.pages.Add(r)
			}
		}
	}
	*e = append(*e, fresh)
	return &(*e)[len(*e)-1].pages
}

func (e *everRegistered) add(r mem.Range, a verbs.Access) {
	e.with(a)
	for i := range *e {
		if w := &(*e)[i]; a.Includes(w.access) {
			w.pages.Add(r)
		}
	}
}

func (e *everRegistered) remove(r mem.Range) {
	for i := range *e {
		(*e)[i].pages.Remove(r)
	}
}
