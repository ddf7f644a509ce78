package regcache

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// regionFor returns the region of a request for the pages p, by the rules of doc.go. With
// Options.AnyCovering, any registered region that covers the request stands for it.
func (c *Cache) regionFor(p mem.Range, a verbs.Access) (*region, error) {
	if c.opts.AnyCovering {
		if g := c.covering(p, a); g != nil {
			return g, nil
		}
	}
	if g := c.bestFit(p, a); g != nil {
		return g, nil
	}
	if candidates := c.growable(p, a); len(candidates) > 0 {
		return c.grow(candidates, p, a)
	}
	return c.add(p, a)
}

// growable returns the regions that may be grown to contain p.
func (c *Cache) growable(p mem.Range, a verbs.Access) (found []*region) {
	// Whatever shares more than half of the longer of the two contains the middle of p, and
	// is at least half and less than twice as long: one class around.
	middle := p.Start + mem.Addr(p.Len()/2)
	for k := class(p.Len()) - 1; k <= class(p.Len())+1; k++ {
		if c.tab.classes>>k&1 == 0 {
			continue
		}
		for g := range c.inGranule(k, middle) {
			if g.rng.Start <= middle && middle < g.rng.End && c.mayGrow(g, p, a) {
				found = append(found, g)
			}
		}
	}
	return found
}

// mayGrow reports whether an overlapping region may be grown to contain p.
func (c *Cache) mayGrow(g *region, p mem.Range, a verbs.Access) bool {
	union := g.rng.Union(p)
	_, united := unite(g, p, a)
	return united && 2*shared(g.rng, p) > max(g.rng.Len(), p.Len()) && union.Len() <= 2*p.Len() && c.fits(union) == nil
}

// grow makes the best of the candidates contain p, and forgets those that it then contains. A
// region that a provider call is under way for is returned as it is: who asked waits for
// the end, and asks again.
func (c *Cache) grow(candidates []*region, p mem.Range, a verbs.Access) (*region, error) {
	best := candidates[0]
	for _, g := range candidates[1:] {
		if better(g, best, p) {
			best = g
		}
	}
	if best.inTransition() {
		return best, nil
	}
	rng := best.rng.Union(p)
	rights, _ := unite(best, p, a)
	for _, g := range candidates {
		if g != best && !g.inTransition() && rng.Contains(g.rng) && rights.Includes(g.access) {
			c.forget(g)
			c.stats.Merged++
		}
	}
	c.stats.Grown++
	return best, c.reshape(best, rng, rights)
}

// better reports whether g shares more of p than o does or, if they share equally, is older.
func better(g, o *region, p mem.Range) bool {
	if a, b := shared(g.rng, p), shared(o.rng, p); a != b {
		return a > b
	}
	return g.id < o.id
}

// shared returns the bytes that two overlapping ranges have in common.
func shared(a, b mem.Range) uint64 {
	return mem.Range{Start: max(a.Start, b.Start), End: min(a.End, b.End)}.Len()
}

// unite returns the rights of the union of g and p, if no page gets a right
// that was not asked for it.
func unite(g *region, p mem.Range, a verbs.Access) (verbs.Access, bool) {
	const kind = verbs.AccessOnDemand | verbs.AccessRelaxedOrdering
	switch {
	case g.access == a:
		return a, true
	case (g.access^a)&kind != 0:
		return 0, false
	case g.rng == p:
		return g.access | a, true
	case p.Contains(g.rng) && a.Includes(g.access):
		return a, true
	}
	return 0, false
}

// add makes p a known region.
func (c *Cache) add(p mem.Range, a verbs.Access) (*region, error) {
	c.forgetForOneMore()
	c.lastID++
	g := &region{id: c.lastID, rng: p, access: a, heapIndex: -1}
	c.byID.add(g)
	return g, c.insert(g)
}

// forgetForOneMore forgets absent regions until one more may be known.
func (c *Cache) forgetForOneMore() {
	for c.byID.len() >= c.opts.KnownRegions && c.absent.first != nil { // else the limit of regions applies
		c.forget(c.absent.first)
	}
}
