package replay

import "pinwheel/trace"

// messageQueue uses messages in the order in which they were posted. The
// first is taken nearly always, however many wait behind it.
type messageQueue struct {
	items []*message
	head  int // items before it were taken
}

func (q *messageQueue) len() int          { return len(q.items) - q.head }
func (q *messageQueue) at(i int) *message { return q.items[q.head+i] }

func (q *messageQueue) push(m *message) {
	if q.head > 32 && q.head > len(q.items)/2 {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	q.items = append(q.items, m)
}

// take removes the i-th message and keeps the order of the others.
func (q *messageQueue) take(i int) *message {
	m := q.at(i)
	copy(q.items[q.head+1:], q.items[q.head:q.head+i])
	q.items[q.head] = nil
	if q.head++; q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	}
	return m
}

// receiving returns the first receive that takes a message with the tag, -1 if there is none.
func (q *messageQueue) receiving(tag int32) int {
	for i := range q.len() {
		if t := q.at(i).tag; t == tag || t == trace.AnyTag {
			return i
		}
	}
	return -1
}

// sent returns the first send that a receive with the tag takes, -1 if there is none.
func (q *messageQueue) sent(tag int32) int {
	for i := range q.len() {
		if tag == trace.AnyTag || q.at(i).tag == tag {
			return i
		}
	}
	return -1
}
