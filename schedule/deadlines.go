package schedule

import (
	"slices"
	"sort"

	"pinwheel/mem"
)

// deadlines have at most one deadline for each region, in order: a list, because jobs have few regions on a rank. What
// comes last and goes first, as in most programs that repeat themselves, takes a few steps; everything else a search
// and a move of memory. A region that is forgotten must be removed first. They belong to one goroutine.
type deadlines struct {
	list []deadline // the earliest first, but those before from are gone
	from int
	all  work // that waits here
	of   placeOf
}

// placeOf tells apart the deadlines that a region may wait in.
type placeOf uint8

const (
	inDue placeOf = iota
	inGated
	inReviews
	placesOf
)

// waiting says which deadlines a region waits in, and for when.
type waiting struct {
	ns [placesOf]int64
	in [placesOf]bool
}

type deadline struct {
	ns    int64
	r     *region
	pages uint64 // of the region when it was put here
}

// work is what registrations take.
type work struct {
	pages uint64
	n     int
}

func (w work) plus(v work) work  { return work{w.pages + v.pages, w.n + v.n} }
func (w work) minus(v work) work { return work{w.pages - v.pages, w.n - v.n} }

// some are the deadlines, in order, until the next change.
func (q *deadlines) some() []deadline { return q.list[q.from:] }

// find returns the place in list of the first deadline that is not before that of a region. IDs break ties, so that the
// first one is the same in every run.
func (q *deadlines) find(ns int64, id mem.RegionID) int {
	some := q.some()
	return q.from + sort.Search(len(some), func(i int) bool {
		d := &some[i]
		return d.ns > ns || d.ns == ns && d.r.id >= id
	})
}

// put sets the deadline of a region, which it inserts or moves.
func (q *deadlines) put(r *region, ns int64) {
	q.remove(r)
	r.waiting.in[q.of], r.waiting.ns[q.of] = true, ns
	q.all = q.all.plus(work{r.pages, 1})
	if len(q.list) == cap(q.list) && 2*q.from > len(q.list) { // rather than grow
		n := copy(q.list, q.some())
		clear(q.list[n:])
		q.list, q.from = q.list[:n], 0
	}
	at := len(q.list)
	if at > q.from && q.list[at-1].ns >= ns {
		at = q.find(ns, r.id)
	}
	q.list = slices.Insert(q.list, at, deadline{ns, r, r.pages})
}

// remove drops a region, and reports whether it was there.
func (q *deadlines) remove(r *region) bool {
	if !r.waiting.in[q.of] {
		return false
	}
	at := q.from
	if q.list[at].r != r {
		at = q.find(r.waiting.ns[q.of], r.id)
	}
	r.waiting.in[q.of], r.waiting.ns[q.of] = false, 0
	q.all = q.all.minus(work{q.list[at].pages, 1})
	if at == q.from {
		q.list[at] = deadline{} // the region may be forgotten
		q.from++
	} else {
		q.list = slices.Delete(q.list, at, at+1)
	}
	return true
}

// get returns the deadline of a region; ok is false if it has none.
func (q *deadlines) get(r *region) (ns int64, ok bool) {
	return r.waiting.ns[q.of], r.waiting.in[q.of]
}

// first returns the entry with the earliest deadline; r is nil if there is none.
func (q *deadlines) first() (r *region, ns int64) {
	if q.all.n == 0 {
		return nil, Never
	}
	d := &q.list[q.from]
	return d.r, d.ns
}

// appendBetween appends the regions with a deadline from one time to another, the earliest first.
func (q *deadlines) appendBetween(to []*region, fromNs, toNs int64) []*region {
	for _, d := range q.list[q.find(fromNs, 0):] {
		if d.ns > toNs {
			break
		}
		to = append(to, d.r)
	}
	return to
}
