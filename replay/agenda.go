package replay

import "pinwheel/replay/pinned"

// never is the time of an actor that has nothing to do until another wakes it.
const never = pinned.Never

// agenda orders the actors of a simulation by the virtual time of their next
// step: an indexed binary heap with one entry per actor. Ties go to the lower
// index, so that a simulation is deterministic.
type agenda struct {
	at   []int64 // per actor
	heap []int32 // actors
	pos  []int32 // per actor: its place in heap
}

func newAgenda(actors int) *agenda {
	a := &agenda{at: make([]int64, actors), heap: make([]int32, actors), pos: make([]int32, actors)}
	for i := range actors {
		a.at[i], a.heap[i], a.pos[i] = never, int32(i), int32(i)
	}
	return a
}

// first returns the actor whose turn it is, and when.
func (a *agenda) first() (actor int32, at int64) {
	actor = a.heap[0]
	return actor, a.at[actor]
}

// set moves an actor to a new time.
func (a *agenda) set(actor int32, at int64) {
	earlier := at < a.at[actor]
	a.at[actor] = at
	if earlier {
		a.up(a.pos[actor])
	} else {
		a.down(a.pos[actor])
	}
}

func (a *agenda) before(x, y int32) bool {
	return a.at[x] < a.at[y] || a.at[x] == a.at[y] && x < y
}

func (a *agenda) up(i int32) {
	for i > 0 {
		p := (i - 1) / 2
		if !a.before(a.heap[i], a.heap[p]) {
			return
		}
		a.swap(i, p)
		i = p
	}
}

func (a *agenda) down(i int32) {
	n := int32(len(a.heap))
	for {
		c := 2*i + 1
		if c >= n {
			return
		}
		if c+1 < n && a.before(a.heap[c+1], a.heap[c]) {
			c++
		}
		if !a.before(a.heap[c], a.heap[i]) {
			return
		}
		a.swap(i, c)
		i = c
	}
}

func (a *agenda) swap(i, j int32) {
	h := a.heap
	h[i], h[j] = h[j], h[i]
	a.pos[h[i]], a.pos[h[j]] = i, j
}
