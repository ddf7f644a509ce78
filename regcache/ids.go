package regcache

import (
	"iter"
	"math/bits"
	"slices"

	"pinwheel/mem"
)

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
