package helper

import "pinwheel/mem"

// deadlines have at most one deadline for each region: a heap of four branches, in which each region
// knows its place. put and remove take O(log n) time, get O(1). Nothing is allocated once the heap has reached its
// largest size. It belongs to one goroutine.
type deadlines struct {
	heap []deadline
	of   placeOf
}

// placeOf tells apart the deadlines that a region may wait in.
type placeOf uint8

const (
	inGated placeOf = iota
	inReviews
	inFar
	placesOf
)

type deadline struct {
	ns int64
	id mem.RegionID // breaks ties, so that the first one is the same in every run
	r  *region
}

func (d *deadline) before(e *deadline) bool { return d.ns < e.ns || d.ns == e.ns && d.id < e.id }

// deadlineBranches is the number of children of an entry: four of them lie next to each other in two cache lines.
const deadlineBranches = 4

// put sets the deadline of a region, which it inserts or moves.
func (q *deadlines) put(r *region, ns int64) {
	place := int(r.places[q.of]) - 1
	if place < 0 {
		place = len(q.heap)
		q.heap = append(q.heap, deadline{})
	}
	q.settle(place, deadline{ns, r.id, r})
}

// remove drops a region, if it is there.
func (q *deadlines) remove(r *region) {
	place := int(r.places[q.of]) - 1
	if place < 0 {
		return
	}
	r.places[q.of] = 0
	n := len(q.heap) - 1
	last := q.heap[n]
	q.heap[n] = deadline{}
	if q.heap = q.heap[:n]; place < n {
		q.settle(place, last)
	}
}

// get returns the deadline of a region; ok is false if it has none.
func (q *deadlines) get(r *region) (ns int64, ok bool) {
	place := int(r.places[q.of]) - 1
	if place < 0 {
		return 0, false
	}
	return q.heap[place].ns, true
}

// first returns the entry with the earliest deadline; r is nil if there is none.
func (q *deadlines) first() (r *region, ns int64) {
	if len(q.heap) == 0 {
		return nil, never
	}
	return q.heap[0].r, q.heap[0].ns
}

func (q *deadlines) len() int { return len(q.heap) }

// appendBetween appends the regions with a deadline from one time to another, in no particular order. It also looks at
// those with an earlier one.
func (q *deadlines) appendBetween(to []*region, fromNs, toNs int64) []*region {
	return q.appendBelow(to, 0, fromNs, toNs)
}

func (q *deadlines) appendBelow(to []*region, place int, fromNs, toNs int64) []*region {
	if place >= len(q.heap) || q.heap[place].ns > toNs {
		return to
	}
	if d := &q.heap[place]; d.ns >= fromNs {
		to = append(to, d.r)
	}
	for i := range deadlineBranches {
		to = q.appendBelow(to, deadlineBranches*place+1+i, fromNs, toNs)
	}
	return to
}

// settle puts an entry into a place that is free, or somewhere above or below it.
func (q *deadlines) settle(place int, d deadline) {
	for place > 0 {
		above := (place - 1) / deadlineBranches
		if !d.before(&q.heap[above]) {
			break
		}
		q.move(place, q.heap[above])
		place = above
	}
	for {
		first := deadlineBranches*place + 1
		if first >= len(q.heap) {
			break
		}
		best := first
		for i := first + 1; i < min(first+deadlineBranches, len(q.heap)); i++ {
			if q.heap[i].before(&q.heap[best]) {
				best = i
			}
		}
		if !q.heap[best].before(&d) {
			break
		}
		q.move(place, q.heap[best])
		place = best
	}
	q.move(place, d)
}

func (q *deadlines) move(place int, d deadline) {
	q.heap[place] = d
	d.r.places[q.of] = uint32(place + 1)
}
