package queue

import (
	"iter"

	"github.com/google/btree"

	"pinwheel/mem"
)

// deadline is one entry of Deadlines.
type deadline struct {
	id mem.RegionID
	ns int64
}

// before orders by time; the identity breaks ties, so that the order of
// entries with equal deadlines is the same in every run.
func (d deadline) before(e deadline) bool {
	return d.ns < e.ns || d.ns == e.ns && d.id < e.id
}

// Deadlines has at most one deadline for each region, ordered by
// (deadline, region). Put and Remove cost O(log n), Get O(1); none allocates
// once the queue has reached its largest size.
//
// It belongs to one goroutine. It must not be changed while it is iterated.
type Deadlines struct {
	tree *btree.BTreeG[deadline]
	at   map[mem.RegionID]int64
}

// treeDegree of 16 makes nodes of up to 31 entries, 496 bytes: a lookup among
// the few thousand regions of a program reads three of them.
const treeDegree = 16

// NewDeadlines returns an empty queue.
func NewDeadlines() *Deadlines {
	return &Deadlines{
		tree: btree.NewG(treeDegree, deadline.before),
		at:   make(map[mem.RegionID]int64),
	}
}

// Put sets the deadline of a region, which it inserts or moves.
func (q *Deadlines) Put(id mem.RegionID, deadlineNs int64) {
	if oldNs, ok := q.at[id]; ok {
		if oldNs == deadlineNs {
			return
		}
		q.tree.Delete(deadline{id, oldNs})
	}
	q.at[id] = deadlineNs
	q.tree.ReplaceOrInsert(deadline{id, deadlineNs})
}

// Remove drops a region and reports whether it was there.
func (q *Deadlines) Remove(id mem.RegionID) bool {
	ns, ok := q.at[id]
	if ok {
		delete(q.at, id)
		q.tree.Delete(deadline{id, ns})
	}
	return ok
}

// Get returns the deadline of a region; ok is false if it has none.
func (q *Deadlines) Get(id mem.RegionID) (deadlineNs int64, ok bool) {
	deadlineNs, ok = q.at[id]
	return deadlineNs, ok
}

// First returns the entry with the earliest deadline; ok is false if the
// queue is empty.
func (q *Deadlines) First() (id mem.RegionID, deadlineNs int64, ok bool) {
	d, ok := q.tree.Min()
	return d.id, d.ns, ok
}

// From iterates over the entries with this deadline or a later one, the earliest first.
func (q *Deadlines) From(deadlineNs int64) iter.Seq2[mem.RegionID, int64] {
	return func(yield func(mem.RegionID, int64) bool) {
		q.tree.AscendGreaterOrEqual(deadline{ns: deadlineNs}, func(d deadline) bool { return yield(d.id, d.ns) })
	}
}

// Len returns the number of entries.
func (q *Deadlines) Len() int { return len(q.at) }
