package replay

import "pinwheel/lab/replay/pinned"

// never is the time of an actor that has nothing to do until another wakes it.
const never = pinned.Never

// eventQueue orders the actors of a simulation by the virtual time of their next
// step, with one entry per actor. Ties go to the lower index, so that a
// simulation is deterministic. It is a binary heap of our own: every step of a simulation changes it, and
// container/heap makes an indirect call for each comparison.
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
	place := q.place[actor]
	for place > 0 {
		above := (place - 1) / 2
		if !q.before(actor, q.actors[above]) {
			break
		}
		q.put(q.actors[above], place)
		place = above
	}
	for {
		below := 2*place + 1
		if below+1 < len(q.actors) && q.before(q.actors[below+1], q.actors[below]) {
			below++
		}
		if below >= len(q.actors) || !q.before(q.actors[below], actor) {
			break
		}
		q.put(q.actors[below], place)
		place = below
	}
	q.put(actor, place)
}

func (q *eventQueue) before(x, y int32) bool {
	return q.at[x] < q.at[y] || q.at[x] == q.at[y] && x < y
}

func (q *eventQueue) put(actor int32, place int) {
	q.actors[place], q.place[actor] = actor, place
}
