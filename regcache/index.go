package regcache

import (
	"iter"
	"math/bits"
	"slices"

	"go.uber.org/atomic"

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

// idIndex finds the known regions by ID: a hash table with linear probing, which fills to one
// half. IDs are given in sequence; the hash scatters them, because remove goes through a whole run.
type idIndex struct {
	places []*region // a power of two of them, or none
	used   int
}

func (x *idIndex) len() int { return x.used }

// get returns the region with this ID, or nil.
func (x *idIndex) get(id mem.RegionID) *region {
	if x.used == 0 {
		return nil
	}
	return x.places[x.find(id)]
}

func (x *idIndex) add(g *region) {
	if 2*(x.used+1) > len(x.places) {
		old := x.places
		x.places = make([]*region, max(64, 2*len(old)))
		for _, o := range old {
			if o != nil {
				x.places[x.find(o.id)] = o
			}
		}
	}
	x.places[x.find(g.id)] = g
	x.used++
}

// remove takes out a region, which must be there, and moves later ones of the run up, so that
// no run has a gap (Knuth, vol. 3, 6.4, algorithm R).
func (x *idIndex) remove(g *region) {
	i := x.find(g.id)
	for j := x.next(i); x.places[j] != nil; j = x.next(j) {
		if x.distance(x.home(x.places[j].id), j) >= x.distance(i, j) {
			x.places[i] = x.places[j]
			i = j
		}
	}
	x.places[i] = nil
	x.used--
}

// all yields the known regions in no particular order.
func (x *idIndex) all() iter.Seq[*region] {
	return func(yield func(*region) bool) {
		for _, g := range x.places {
			if g != nil && !yield(g) {
				return
			}
		}
	}
}

// find returns the place of the region with this ID, or the free place where it would go.
func (x *idIndex) find(id mem.RegionID) int {
	i := x.home(id)
	for x.places[i] != nil && x.places[i].id != id {
		i = x.next(i)
	}
	return i
}

// home is where find begins to look (Fibonacci hashing; Knuth, vol. 3, 6.4).
func (x *idIndex) home(id mem.RegionID) int {
	return int(uint64(id) * golden >> (bits.LeadingZeros(uint(len(x.places)-1)) & 63))
}

func (x *idIndex) next(i int) int { return (i + 1) & (len(x.places) - 1) }

// distance is how many steps it takes from i to j.
func (x *idIndex) distance(i, j int) int { return (j - i) & (len(x.places) - 1) }

// roomForOne doubles a slice that is full. append would add a quarter to a long one: a cache that
// fills would copy more, and touch more new pages.
func roomForOne[S ~[]E, E any](s S) S {
	if len(s) == cap(s) {
		s = slices.Grow(s, len(s)+1)
	}
	return s
}

// maxForgotten bounds the IDs kept for a helper that does not ask.
const maxForgotten = 1 << 16

// forgotten holds the IDs of regions that are no longer known. Cache.mu protects all but some.
type forgotten struct {
	ids  []mem.RegionID
	some atomic.Bool // there are IDs: a cheap first look
}

func (q *forgotten) push(id mem.RegionID) {
	if len(q.ids) == maxForgotten {
		q.ids = q.ids[:0]
	}
	q.ids = append(roomForOne(q.ids), id)
	q.some.Store(true)
}

// Gone appends to buf the IDs of regions that were merged into others, invalidated or forgotten since the last call.
// Of very many it leaves some out: whoever acts on those gets ErrUnknown. It first deals with changes of mappings, which
// hits of C code look at without doing so: memory that was unmapped must not stay pinned. Gone takes no lock if there is
// nothing to do.
func (c *Cache) Gone(buf []mem.RegionID) []mem.RegionID {
	c.catchUp()
	if !c.forgotten.some.Load() {
		return buf
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	buf = append(buf, c.forgotten.ids...)
	c.forgotten.ids = c.forgotten.ids[:0]
	c.forgotten.some.Store(false)
	return buf
}

// Known reports whether an ID still names a region.
func (c *Cache) Known(id mem.RegionID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID.get(id) != nil
}
