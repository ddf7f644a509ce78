// Package turns decides which transfer of which client is next, and how much memory it may have registered. Clients
// take turns by the bytes that they ask for: deficit round robin, as in Shreedhar and Varghese, "Efficient Fair Queuing
// using Deficit Round Robin" (SIGCOMM 1995). It knows no clock and starts no goroutine; its driver holds a lock.
package turns

import "slices"

// quantum is what a client gains in a round: the larger it is, the longer one client may keep the others waiting.
const quantum = 1 << 20 // 1 MiB

// Limits bound what goes on at a time.
type Limits struct {
	Bytes       int64 // of memory, of all transfers that Ask.Registered says register it
	ClientBytes int64 // of memory, of all transfers of one client; a single one may have more
	Active      int   // transfers that Ask.Counted says count
}

// Client identifies a client.
type Client any

// Ask describes a transfer.
type Ask struct {
	Cost  int64 // bytes that it moves
	Want  int64 // bytes of memory that it can use; 0: none
	Least int64 // bytes of memory without which it can't begin
	// Registered memory takes its share of Limits.Bytes. Other memory bounds only what one client has.
	Registered bool
	// Counted transfers take their share of Limits.Active. Those of a client whose network may be slow should not.
	Counted bool
}

// Turn is a transfer that waits, or that goes on. Its driver gives it back with Done.
type Turn struct {
	Ask
	Bytes int64 // of memory that it has
	of    *queue
}

// queue has the transfers of a client.
type queue struct {
	client  Client
	waiting []*Turn
	deficit int64 // bytes that the client may move before the others
	going   int   // transfers
	used    int64 // bytes of memory
	sharing int   // transfers that register, waiting or going on
}

// Turns has the transfers of all clients.
type Turns struct {
	limits  Limits
	used    int64 // bytes of registered memory
	sharing int   // clients with transfers that register
	active  int   // counted transfers
	clients []*queue
	next    int // index of the client whose turn it is
}

// New returns Turns without clients.
func New(l Limits) *Turns { return &Turns{limits: l} }

// Used returns the bytes of memory that transfers have registered.
func (t *Turns) Used() int64 { return t.used }

// Active returns how many transfers go on that count.
func (t *Turns) Active() int { return t.active }

// Of returns how many transfers a client has that wait or go on.
func (t *Turns) Of(c Client) int {
	if i := t.index(c); i >= 0 {
		return t.clients[i].going + len(t.clients[i].waiting)
	}
	return 0
}

func (t *Turns) index(c Client) int {
	return slices.IndexFunc(t.clients, func(q *queue) bool { return q.client == c })
}

// Add adds a transfer. It waits until Next returns it.
func (t *Turns) Add(c Client, a Ask) *Turn {
	a.Least = min(a.Least, a.Want)
	if a.Registered {
		a.Least = min(a.Least, t.limits.Bytes)
	}
	i := t.index(c)
	if i < 0 {
		i = len(t.clients)
		t.clients = append(t.clients, &queue{client: c})
	}
	turn := &Turn{Ask: a, of: t.clients[i]}
	turn.of.waiting = append(turn.of.waiting, turn)
	if a.Registered {
		if turn.of.sharing++; turn.of.sharing == 1 {
			t.sharing++
		}
	}
	return turn
}

// Cancel takes a transfer away that waits, and tells whether it did.
func (t *Turns) Cancel(turn *Turn) bool {
	q := turn.of
	i := slices.Index(q.waiting, turn)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	t.leave(turn)
	return true
}

// Done ends a transfer that Next returned.
func (t *Turns) Done(turn *Turn) {
	if turn.Registered {
		t.used -= turn.Bytes
	}
	if turn.Counted {
		t.active--
	}
	turn.of.going--
	turn.of.used -= turn.Bytes
	t.leave(turn)
}

// leave forgets a transfer, and a client without any. A client that comes again begins without a deficit, so that
// nobody saves turns.
func (t *Turns) leave(turn *Turn) {
	q := turn.of
	if turn.Registered {
		if q.sharing--; q.sharing == 0 {
			t.sharing--
		}
	}
	if q.going > 0 || len(q.waiting) > 0 {
		return
	}
	i := slices.Index(t.clients, q)
	t.clients = slices.Delete(t.clients, i, i+1)
	if t.next > i {
		t.next--
	}
}

// Next returns the next transfer that can begin, if there is one. The one whose turn it is waits for memory rather than
// to let a smaller one pass: it would wait for ever else.
func (t *Turns) Next() (*Turn, bool) {
	if !slices.ContainsFunc(t.clients, t.ready) {
		return nil, false
	}
	for {
		if t.next >= len(t.clients) {
			t.next = 0
		}
		q := t.clients[t.next]
		if !t.ready(q) {
			t.next++
			continue
		}
		turn := q.waiting[0]
		if q.deficit < turn.Cost {
			q.deficit += quantum
			t.next++
			continue
		}
		if !t.begin(turn) {
			return nil, false
		}
		q.deficit -= turn.Cost
		q.waiting = q.waiting[1:]
		if len(q.waiting) == 0 {
			q.deficit = 0
		}
		return turn, true
	}
}

// ready tells whether a client has a transfer for which it has memory left.
func (t *Turns) ready(q *queue) bool {
	return len(q.waiting) > 0 && (q.used == 0 || q.used+q.waiting[0].Want <= t.limits.ClientBytes)
}

// begin gives a transfer its memory, if there is enough. Of what is registered it is no more than an equal part of all,
// so that a client that takes long leaves room for the others.
func (t *Turns) begin(turn *Turn) bool {
	if turn.Counted && t.active >= t.limits.Active {
		return false
	}
	turn.Bytes = turn.Want
	if turn.Registered {
		share := max(t.limits.Bytes/int64(t.sharing), turn.Least)
		turn.Bytes = min(turn.Want, share, t.limits.Bytes-t.used)
		if turn.Bytes < turn.Least {
			turn.Bytes = 0
			return false
		}
		t.used += turn.Bytes
	}
	turn.of.used += turn.Bytes
	turn.of.going++
	if turn.Counted {
		t.active++
	}
	return true
}
