package replay

import (
	"container/heap"

	"pinwheel/replay/pinned"
)

// never is the time of an actor that has nothing to do until another wakes it.
const never = pinned.Never

// eventQueue orders the actors of a simulation by the virtual time of their next
// step, with one entry per actor. Ties go to the lower index, so that a
// simulation is deterministic. It is a heap.Interface.
type eventQueue struct {
	at     []int64 // per actor
	actors []int32 // the heap
	place  []int   // per actor: where it is in actors
}

func newEventQueue(actors int) *eventQueue {
	q := &eventQueue{at: make([]int64, actors), actors: make([]int32, actors), place: make([]int, actors)}
	for i := range actors {
		q.at[i], q.actors[i], q.place[i] = never, int32(i), i
	}
	return q
}

// first returns the actor whose turn it is, and when.
func (q *eventQueue) first() (actor int32, at int64) {
	actor = q.actors[0]
	return actor, q.at[actor]
}

// set moves an actor to a new time.
func (q *eventQueue) set(actor int32, at int64) {
	q.at[actor] = at
	heap.Fix(q, q.place[actor])
}

func (q *eventQueue) Len() int { return len(q.actors) }

func (q *eventQueue) Less(i, j int) bool {
	x, y := q.actors[i], q.actors[j]
	return q.at[x] < q.at[y] || q.at[x] == q.at[y] && x < y
}

func (q *eventQueue) Swap(i, j int) {
	q.actors[i], q.actors[j] = q.actors[j], q.actors[i]
	q.place[q.actors[i]], q.place[q.actors[j]] = i, j
}

func (q *eventQueue) Push(any) { panic("actors don't come") }
func (q *eventQueue) Pop() any { panic("actors don't go") }
