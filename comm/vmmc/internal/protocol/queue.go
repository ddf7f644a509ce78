package protocol

import "slices"

// Notification is what a message tells the exporter.
type Notification struct {
	From   Grant
	Peer   string // name of the importer
	Tag    uint16
	Offset uint64 // of the message, in the export
	Bytes  uint64 // of the message
	Count  int    // how many this one stands for; the message is the last of them
}

// Queue keeps the notifications of an export until somebody takes them. Like a signal, a notification that
// nobody wants is dropped, and one that is blocked stays; unlike signals, all of them stay (§4.4). The
// credits of the importers bound its length. Coalescing takes one more credit than notifications are to
// wait: with that, an importer can add to one of them.
type Queue struct {
	// Coalesce makes one notification of those of the same import with the same tag.
	Coalesce bool

	blocked, discard, handler bool
	waiters                   int
	items                     []Notification
}

// Put adds a notification and tells whether it stays. If it does not, its credit is free at once.
func (q *Queue) Put(n Notification) (kept bool) {
	if !q.wanted() {
		return false
	}
	if q.Coalesce {
		same := func(o Notification) bool { return o.From == n.From && o.Tag == n.Tag }
		if i := slices.IndexFunc(q.items, same); i >= 0 {
			n.Count += q.items[i].Count
			q.items[i] = n
			return false
		}
	}
	q.items = append(q.items, n)
	return true
}

// Take removes the oldest notification.
func (q *Queue) Take() (n Notification, ok bool) {
	if len(q.items) == 0 {
		return n, false
	}
	n = q.items[0]
	q.items = q.items[1:]
	return n, true
}

// Deliverable tells whether a handler should Take.
func (q *Queue) Deliverable() bool { return q.handler && !q.blocked && len(q.items) > 0 }

// Len returns the number of notifications in the queue.
func (q *Queue) Len() int { return len(q.items) }

// The next four change what becomes of notifications. They return those in the queue that nobody wants
// any more, whose credits are free.

// Block keeps notifications from the handler, or gives it those that came meanwhile.
func (q *Queue) Block(yes bool) (dropped []Notification) { q.blocked = yes; return q.settle() }

// Discard drops all notifications, or accepts them again.
func (q *Queue) Discard(yes bool) (dropped []Notification) { q.discard = yes; return q.settle() }

// Handle says whether there is a handler.
func (q *Queue) Handle(yes bool) (dropped []Notification) { q.handler = yes; return q.settle() }

// Wait says how many more wait for a notification; negative: fewer.
func (q *Queue) Wait(more int) (dropped []Notification) { q.waiters += more; return q.settle() }

func (q *Queue) wanted() bool { return !q.discard && (q.blocked || q.handler || q.waiters > 0) }

func (q *Queue) settle() (dropped []Notification) {
	if !q.wanted() {
		dropped, q.items = q.items, nil
	}
	return dropped
}
