package helper

import "math"

// A plan for what is to be registered one after the other depends on few of its entries: on none that is due later
// than all of them together would take after the first one. So the tree has only those that are near. All
// others wait in blocks, where they take no summary, until the time has come so close to them.

// put sets when a region must be registered.
func (q *registrationQueue) put(r *region, dueNs int64) {
	q.planned = false
	q.removeFar(r)
	if dueNs <= q.nearNs {
		q.tree.put(r, dueNs, r.pages)
		return
	}
	q.tree.remove(r)
	q.far.put(r, dueNs)
	r.farPages = r.pages
	q.farWork = q.farWork.plus(work{r.pages, 1})
}

func (q *registrationQueue) remove(r *region) {
	if q.tree.remove(r) || q.removeFar(r) {
		q.planned = false
	}
}

func (q *registrationQueue) removeFar(r *region) bool {
	if _, ok := q.far.get(r); !ok {
		return false
	}
	q.far.remove(r)
	q.farWork = q.farWork.minus(work{r.farPages, 1})
	return true
}

// all is what is queued.
func (q *registrationQueue) all() work { return q.tree.all.plus(q.farWork) }

// deadline returns when a region must be registered; ok is false if it is not queued.
func (q *registrationQueue) deadline(r *region) (dueNs int64, ok bool) {
	if n := q.tree.get(r); n != nil {
		return n.dueNs, true
	}
	return q.far.get(r)
}

// appendBetween appends the regions that are due from one time to another, in no particular order.
func (q *registrationQueue) appendBetween(to []*region, fromNs, toNs int64) []*region {
	for n := range q.tree.from(fromNs) {
		if n.dueNs > toNs {
			break
		}
		to = append(to, n.r)
	}
	return q.far.appendBetween(to, fromNs, toNs)
}

// leastMarginNs is more than any rounding of a few costs.
const leastMarginNs = 1000

// approach moves into the tree what the next plan may depend on. One for several workers may depend on everything.
func (q *registrationQueue) approach(by *planning) {
	r, dueNs := q.far.first()
	if r == nil {
		if q.tree.first() == nil { // nearNs may be of several workers, or of much that was queued
			q.nearNs = math.MinInt64
		}
		return
	}
	firstNs := dueNs
	if n := q.tree.first(); n != nil {
		firstNs = n.dueNs
	} else {
		q.nearNs = firstNs
	}
	untilNs := int64(never)
	if by.workers <= 1 {
		// Sums are rounded otherwise than the summaries of the tree: an eighth more is out of doubt.
		allNs := by.workNs(q.all())
		if marginNs := allNs + allNs/8 + leastMarginNs; firstNs < never-2*marginNs {
			if firstNs+marginNs <= q.nearNs {
				return
			}
			untilNs = firstNs + 2*marginNs // those that come together have most of their summaries in common
		}
	}
	for ; r != nil && dueNs <= untilNs; r, dueNs = q.far.first() {
		pages := r.farPages
		q.removeFar(r)
		q.tree.put(r, dueNs, pages)
	}
	q.nearNs = max(q.nearNs, untilNs)
}
