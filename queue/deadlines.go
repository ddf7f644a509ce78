package queue

import (
	"iter"

	"github.com/google/btree"

	"pinwheel/mem"
)

// Deadline is one entry of Deadlines: region ID is due at Ns.
type Deadline struct {
	ID mem.RegionID
	Ns int64
}

// before orders by time; the identity breaks ties, so that the order of
// entries with equal deadlines is the same in every run.
func (d Deadline) before(e Deadline) bool {
	return d.Ns < e.Ns || d.Ns == e.Ns && d.ID < e.ID
}

// Deadlines is RQ: at most one deadline for each region, ordered by
// (deadline, region). Put, Remove and the neighbour lookups cost O(log n), Get
// O(1); none allocates once the queue has reached its largest size.
//
// It belongs to one goroutine. It must not be changed while it is iterated.
type Deadlines struct {
	tree *btree.BTreeG[Deadline]
	at   map[mem.RegionID]int64
}

// treeDegree of 16 makes nodes of up to 31 entries, 496 bytes: a lookup among
// the few thousand regions that a program has reads three of them.
const treeDegree = 16

// NewDeadlines returns an empty queue.
func NewDeadlines() *Deadlines {
	return &Deadlines{
		tree: btree.NewG(treeDegree, Deadline.before),
		at:   make(map[mem.RegionID]int64),
	}
}

// Put sets the deadline of a region, which it inserts or moves.
func (q *Deadlines) Put(id mem.RegionID, deadlineNs int64) {
	if oldNs, ok := q.at[id]; ok {
		if oldNs == deadlineNs {
			return
		}
		q.tree.Delete(Deadline{id, oldNs})
	}
	q.at[id] = deadlineNs
	q.tree.ReplaceOrInsert(Deadline{id, deadlineNs})
}

// Remove drops a region and reports whether it was there.
func (q *Deadlines) Remove(id mem.RegionID) bool {
	ns, ok := q.at[id]
	if ok {
		delete(q.at, id)
		q.tree.Delete(Deadline{id, ns})
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
	return d.ID, d.Ns, ok
}

// Before returns the entry that directly precedes a region's; ok is false if
// the region is not queued or is the first.
func (q *Deadlines) Before(id mem.RegionID) (prev Deadline, ok bool) {
	ns, queued := q.at[id]
	if !queued {
		return Deadline{}, false
	}
	self := Deadline{id, ns}
	q.tree.DescendLessOrEqual(self, func(d Deadline) bool {
		if d == self {
			return true
		}
		prev, ok = d, true
		return false
	})
	return prev, ok
}

// After returns the entry that directly follows a region's; ok is false if
// the region is not queued or is the last.
func (q *Deadlines) After(id mem.RegionID) (next Deadline, ok bool) {
	ns, queued := q.at[id]
	if !queued {
		return Deadline{}, false
	}
	self := Deadline{id, ns}
	q.tree.AscendGreaterOrEqual(self, func(d Deadline) bool {
		if d == self {
			return true
		}
		next, ok = d, true
		return false
	})
	return next, ok
}

// Ascend iterates over all entries from the earliest deadline.
func (q *Deadlines) Ascend() iter.Seq2[mem.RegionID, int64] {
	return func(yield func(mem.RegionID, int64) bool) {
		q.tree.Ascend(func(d Deadline) bool { return yield(d.ID, d.Ns) })
	}
}

// Descend iterates over all entries from the latest deadline.
func (q *Deadlines) Descend() iter.Seq2[mem.RegionID, int64] {
	return func(yield func(mem.RegionID, int64) bool) {
		q.tree.Descend(func(d Deadline) bool { return yield(d.ID, d.Ns) })
	}
}

// Len returns the number of entries.
func (q *Deadlines) Len() int { return len(q.at) }
