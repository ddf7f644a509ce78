package regcache

import (
	"pinwheel/mem"
	"pinwheel/verbs"
)

// regionFor returns the request's region or, with Options.AnyCovering, any registered
// region that covers it.
func (c *Cache) regionFor(p mem.Range, a verbs.Access) (*region, error) {
	if c.opts.AnyCovering {
		if g := c.index.covering(p, a); g != nil {
			return g, nil
		}
	}
	return c.fitOrAdd(p, a)
}

// fitOrAdd returns the best fit of a request for the pages p, or grows or adds a
// region if there is none. A region that is to be grown while a provider call
// for it is under way is returned as it is.
func (c *Cache) fitOrAdd(p mem.Range, a verbs.Access) (*region, error) {
	if g := c.index.bestFit(p, a); g != nil {
		return g, nil
	}
	// Whatever shares more than half of the longer of the two is at least half
	// and less than twice as long: one class around.
	var best *region
	var others []*region
	k := class(p.Len())
	c.index.overlapping(p, k-1, k+1, func(g *region) bool {
		union := g.rng.Union(p)
		if _, ok := unite(g, p, a); !ok || 2*shared(g.rng, p) <= max(g.rng.Len(), p.Len()) ||
			union.Len() > 2*p.Len() || c.fits(union) != nil {
			return true
		}
		if best != nil && !better(g, best, p) {
			others = append(others, g)
			return true
		}
		if best != nil {
			others = append(others, best)
		}
		best = g
		return true
	})
	if best == nil {
		return c.add(p, a)
	}
	if best.state == registering || best.state == draining {
		return best, nil
	}
	rng := best.rng.Union(p)
	rights, _ := unite(best, p, a)
	for _, g := range others {
		if g.state != registering && g.state != draining && rng.Contains(g.rng) && rights.Includes(g.access) {
			c.forget(g)
			c.stats.Merged++
		}
	}
	c.stats.Grown++
	return best, c.reshape(best, rng, rights)
}

// better prefers the larger share of p, then the older region.
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
	for len(c.byID) >= c.opts.KnownRegions {
		old := c.absent.first()
		if old == nil {
			break // all are registered: the limit of regions applies
		}
		c.forget(old)
	}
	c.lastID++
	g := &region{id: c.lastID, rng: p, access: a, heapIndex: -1}
	c.byID[g.id] = g
	return g, c.insert(g)
}
