package regcache

import (
	"iter"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// How the writer finds known regions: in the table, as hits do. A region of class k is at most
// 2^k bytes long, and the table has it under the one or two granules of 2^k bytes that it
// touches.

// inGranule yields the regions of class k in the granule of that class which holds a.
func (c *Cache) inGranule(k uint64, a mem.Addr) iter.Seq[*region] {
	return func(yield func(*region) bool) {
		in := c.tab.area(c.tab.granules)
		for i := in.place(uint64(a) >> k); ; i = (i + 1) & in.mask() {
			s := in.at(i).state & slotMask
			if s == 0 {
				return
			}
			// Other entries lie on the way, too.
			if g := c.bySlot[s-1]; class(g.rng.Len()) == k && g.touches(k, a) && !yield(g) {
				return
			}
		}
	}
}

// touches reports whether a page of g lies in the granule of class k which holds a.
func (g *region) touches(k uint64, a mem.Addr) bool {
	return g.rng.Start>>k <= a>>k && a>>k <= (g.rng.End-1)>>k
}

// bestFit returns the smallest region that contains p with the rights a and is
// at most twice as long; of equal ones the first in the address space.
func (c *Cache) bestFit(p mem.Range, a verbs.Access) *region {
	fit, state := c.shared.find(uint64(p.Start), uint64(p.End), packAccess(a), false)
	if fit == nil {
		return nil
	}
	return c.bySlot[state&slotMask-1]
}

// covering returns a registered region that covers p with the rights a: of the smallest class
// that has one, the first in the address space.
func (c *Cache) covering(p mem.Range, a verbs.Access) (found *region) {
	k := class(p.Len())
	for classes := c.tab.classes >> k; classes != 0 && found == nil; classes, k = classes>>1, k+1 {
		if classes&1 == 0 {
			continue
		}
		for g := range c.inGranule(k, p.Start) {
			if g.state == registered && g.rng.Contains(p) && g.access.Includes(a) && (found == nil || g.before(found)) {
				found = g
			}
		}
	}
	return found
}

// overlapping returns the regions that share a page with r.
func (c *Cache) overlapping(r mem.Range) (found []*region) {
	if c.granules(r) > uint64(len(c.bySlot)) {
		for _, g := range c.bySlot {
			if g != nil && g.known() && g.rng.Overlaps(r) {
				found = append(found, g)
			}
		}
		return found
	}
	for k, n := range c.tab.byClass {
		for at := r.Start; n > 0 && at < r.End; at = next(at, uint64(k)) {
			for g := range c.inGranule(uint64(k), at) {
				// A region in two granules counts in the first of them that r touches.
				if first := max(g.rng.Start, r.Start); first>>k == at>>k && g.rng.Overlaps(r) {
					found = append(found, g)
				}
			}
		}
	}
	return found
}

// next returns where the granule of class k after that of a begins, or the end of the address space.
func next(a mem.Addr, k uint64) mem.Addr {
	if n := (a>>k + 1) << k; n > a {
		return n
	}
	return ^mem.Addr(0)
}

// granules returns how many granules r touches, of all classes that have a region.
func (c *Cache) granules(r mem.Range) (n uint64) {
	for k, regions := range c.tab.byClass {
		if regions > 0 {
			n += uint64((r.End-1)>>k-r.Start>>k) + 1
		}
	}
	return n
}
