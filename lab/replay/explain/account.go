package explain

import (
	"cmp"
	"slices"

	"pinwheel/mem"
)

// layer says why a piece of memory is pinned: by the clairvoyant bound, by the policy for a use, or by the policy for a
// Cause.
type layer uint8

const (
	byBound layer = 254
	inUse   layer = 255
)

// piece is a range that is pinned for some time.
type piece struct {
	span
	rng    mem.Range
	layer  layer
	region int32 // index of the region to charge
}

// account sets what a policy pins against what the bound pins, page by page: a page counts once, however many pieces
// pin it.
type account struct {
	pieces []piece

	// Of byte nanoseconds: what the policy pins and the bound, and by region and cause what the first pins
	// and the second doesn't, or, as Late, the other way round.
	pinned, bound float64
	lost          [][Causes]float64
}

// segment is a stretch of pages that all pieces have in common.
type segment struct {
	bytes  float64
	lastNs int64
	active []int32 // pieces
}

// edge is where a piece begins or ends.
type edge struct {
	ns    int64
	piece int32
	begin bool
}

// add adds a piece, as far as it lies between 0 and endNs.
func (a *account) add(s span, r mem.Range, l layer, region int32, endNs int64) {
	s = span{max(s.from, 0), min(s.to, endNs)}
	if s.from < s.to && !r.Empty() {
		a.pieces = append(a.pieces, piece{s, r, l, region})
	}
}

// settle computes the sums.
func (a *account) settle(regions int) {
	a.lost = make([][Causes]float64, regions)
	var cuts []mem.Addr
	edges := make([]edge, 0, 2*len(a.pieces))
	for i, p := range a.pieces {
		cuts = append(cuts, p.rng.Start, p.rng.End)
		edges = append(edges, edge{p.from, int32(i), true}, edge{p.to, int32(i), false})
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	slices.SortFunc(edges, func(x, y edge) int { return cmp.Or(cmp.Compare(x.ns, y.ns), cmp.Compare(x.piece, y.piece)) })
	segments := make([]segment, max(len(cuts)-1, 0))
	for i := range segments {
		segments[i].bytes = float64(cuts[i+1] - cuts[i])
	}
	for _, e := range edges {
		p := &a.pieces[e.piece]
		i, _ := slices.BinarySearch(cuts, p.rng.Start)
		for ; cuts[i] < p.rng.End; i++ {
			s := &segments[i]
			a.charge(s, e.ns)
			if e.begin {
				s.active = append(s.active, e.piece)
			} else {
				k := slices.Index(s.active, e.piece)
				s.active = slices.Delete(s.active, k, k+1)
			}
		}
	}
}

// charge accounts for a segment until nowNs.
func (a *account) charge(s *segment, nowNs int64) {
	amount := s.bytes * float64(nowNs-s.lastNs)
	s.lastNs = nowNs
	if amount == 0 || len(s.active) == 0 {
		return
	}
	const none = Cause(Causes)
	cause, region, isBound, isPinned := none, int32(0), false, false
	take := func(c Cause, r int32) {
		if c < cause {
			cause, region = c, r
		}
	}
	for _, i := range s.active {
		switch p := &a.pieces[i]; p.layer {
		case byBound:
			isBound = true
			take(Late, p.region)
		case inUse:
			isPinned = true
			take(Merged, p.region)
		default:
			isPinned = true
			take(Cause(p.layer), p.region)
		}
	}
	if isPinned {
		a.pinned += amount
	}
	if isBound {
		a.bound += amount
	}
	switch {
	case isPinned && isBound:
	case isPinned:
		a.lost[region][cause] += amount
	default:
		a.lost[region][Late] -= amount
	}
}
