package replay

import "pinwheel/replay/pinned"

// never is the time of an actor that has nothing to do until another wakes it.
const never = pinned.Never

// eventQueue orders the actors of a simulation by the virtual time of their next
// step: an indexed binary heap with one entry per actor. Ties go to the lower
// index, so that a simulation is deterministic.
type eventQueue struct {
	at   []int64 // per actor
	heap []int32 // actors
	pos  []int32 // per actor: its place in heap
}

func newEventQueue(actors int) *eventQueue {
	q := &eventQueue{at: make([]int64, actors), heap: make([]int32, actors), pos: make([]int32, actors)}
	for i := range actors {
		q.at[i], q.heap[i], q.pos[i] = never, int32(i), int32(i)
	}
	return q
}

// first returns the actor whose turn it is, and when.
func (q *eventQueue) first() (actor int32, at int64) {
	actor = q.heap[0]
	return actor, q.at[actor]
}

// set moves an actor to a new time.
func (q *eventQueue) set(actor int32, at int64) {
	earlier := at < q.at[actor]
	q.at[actor] = at
	if earlier {
		q.up(q.pos[actor])
	} else {
		q.down(q.pos[actor])
	}
}

func (q *eventQueue) before(x, y int32) bool {
	return q.at[x] < q.at[y] || q.at[x] == q.at[y] && x < y
}

func (q *eventQueue) up(i int32) {
	for i > 0 {
		p := (i - 1) / 2
		if !q.before(q.heap[i], q.heap[p]) {
			return
		}
		q.swap(i, p)
		i = p
	}
}

func (q *eventQueue) down(i int32) {
	n := int32(len(q.heap))
	for {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && q.before(q.heap[c+1], q.heap[c]) {
			c++
		}
		if !q.before(q.heap[c], q.heap[i]) {
			return
		}
		q.swap(i, c)
		i = c
	}
}

func (q *eventQueue) swap(i, j int32) {
	h := q.heap
	h[i], h[j] = h[j], h[i]
	q.pos[h[i]], q.pos[h[j]] = i, j
}
