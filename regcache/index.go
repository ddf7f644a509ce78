package regcache

import (
	"math/bits"

	"github.com/google/btree"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// index orders the known regions by class of length, then by address. A
// region of class k is at most 2^k bytes long, so those that overlap a range
// start less than 2^k before it: one short scan for each class that exists.
type index struct {
	tree  *btree.BTreeG[*region]
	count [64]int // regions by class
	some  uint64  // bit k: count[k] > 0
	pivot region  // where a scan starts
}

func newIndex() *index {
	return &index{tree: btree.NewG(16, (*region).before)}
}

func (x *index) add(g *region) {
	x.tree.ReplaceOrInsert(g)
	k := class(g.rng.Len())
	x.count[k]++
	x.some |= 1 << k
}

func (x *index) remove(g *region) {
	x.tree.Delete(g)
	k := class(g.rng.Len())
	if x.count[k]--; x.count[k] == 0 {
		x.some &^= 1 << k
	}
}

// overlapping calls f with the regions of classes low to high that share an
// address with r, in order, until f returns false.
func (x *index) overlapping(r mem.Range, low, high uint64, f func(*region) bool) {
	for some := x.some >> low << low; some != 0; some &= some - 1 {
		k := uint64(bits.TrailingZeros64(some))
		if k > high {
			return
		}
		// Scan from the shortest region of class k that starts where one can just reach r.
		reach := mem.Addr(1) << k
		from := r.Start - min(r.Start, reach)
		x.pivot.rng = mem.Range{Start: from, End: from + reach/2 + 1}
		goOn := true
		x.tree.AscendGreaterOrEqual(&x.pivot, func(g *region) bool {
			if g.rng.Start >= r.End || class(g.rng.Len()) != k {
				return false
			}
			if g.rng.Overlaps(r) {
				goOn = f(g)
			}
			return goOn
		})
		if !goOn {
			return
		}
	}
}

// bestFit returns the smallest region that contains p with the rights a and is
// at most twice as long; of equal ones the first in the address space. It
// agrees with Local.bestFit.
func (x *index) bestFit(p mem.Range, a verbs.Access) *region {
	var best *region
	k := class(p.Len())
	for ; best == nil && k <= class(p.Len())+1; k++ {
		x.overlapping(p, k, k, func(g *region) bool {
			fits := g.rng.Contains(p) && g.rng.Len() <= 2*p.Len() && g.access.Includes(a)
			if fits && (best == nil || g.rng.Len() < best.rng.Len()) {
				best = g
			}
			return true
		})
	}
	return best
}

// covering returns a registered region that covers p with the rights a.
func (x *index) covering(p mem.Range, a verbs.Access) *region {
	var found *region
	x.overlapping(p, class(p.Len()), 63, func(g *region) bool {
		if g.state == registered && g.rng.Contains(p) && g.access.Includes(a) {
			found = g
		}
		return found == nil
	})
	return found
}
