package replay

import "pinwheel/trace"

// unknown is a time that is not known yet.
const unknown = -1

// message is one point-to-point transfer, made by whichever side is posted first.
type message struct {
	comm       int32
	src, dst   int32 // world ranks; src is trace.AnySource until matched
	tag        int32
	bytes      uint64 // of the send
	rendezvous bool
	// synchronous: the sender waits for its receiver by the program's own wish.
	synchronous bool
	sendAt      int64 // when each side was posted, or unknown
	recvAt      int64
	arrival     int64 // of an eager message at the receiver
	sendDone    int64 // when each side completes, or unknown
	recvDone    int64
	order       uint64 // of posting, for wildcards
	sendLine    uint32
	recvLine    uint32
	sendUse     *bufferUse // registered buffers of rendezvous transfers, for policy pipeline
	recvUse     *bufferUse
	sendWaiter  *rank // blocked until this side completes
	recvWaiter  *rank
	sides       int8 // that still refer to it; the last one returns it to the pool
}

// side returns when a side completes, and who is blocked until then.
func (m *message) side(send bool) (doneNs *int64, waiter **rank) {
	if send {
		return &m.sendDone, &m.sendWaiter
	}
	return &m.recvDone, &m.recvWaiter
}

// channel is the pair of queues between one sender and one receiver on one
// communicator. Messages between them never overtake each other.
type channel struct {
	sends messageQueue // posted, not received
	recvs messageQueue // posted, not sent
}

type channelKey struct{ comm, src, dst int32 }

// matcher pairs sends and receives by source, destination, tag and
// communicator, with wildcards.
type matcher struct {
	channels map[channelKey]*channel
	anySrc   map[channelKey]*messageQueue // receives from any source: src of the key is trace.AnySource
	ranks    int32
	order    uint64
	free     []*message
	pending  int // messages posted on one side only
}

func newMatcher(ranks int) *matcher {
	return &matcher{channels: map[channelKey]*channel{}, anySrc: map[channelKey]*messageQueue{}, ranks: int32(ranks)}
}

func (mt *matcher) channel(k channelKey) *channel {
	c := mt.channels[k]
	if c == nil {
		c = &channel{}
		mt.channels[k] = c
	}
	return c
}

// message returns a new message, posted on one side.
func (mt *matcher) message() *message {
	mt.order++
	mt.pending++
	m := &message{}
	if n := len(mt.free); n > 0 {
		m, mt.free = mt.free[n-1], mt.free[:n-1]
	}
	*m = message{order: mt.order, sides: 2, sendAt: unknown, recvAt: unknown, sendDone: unknown, recvDone: unknown}
	return m
}

// drop gives up one side's reference.
func (mt *matcher) drop(m *message) {
	if m.sides--; m.sides == 0 {
		mt.free = append(mt.free, m)
	}
}

// send returns the message of a send: the oldest waiting receive that
// matches, or a new one.
func (mt *matcher) send(comm, src, dst, tag int32) *message {
	c := mt.channel(channelKey{comm, src, dst})
	q, i := &c.recvs, c.recvs.receiving(tag)
	if any := mt.anySrc[channelKey{comm, trace.AnySource, dst}]; any != nil {
		if j := any.receiving(tag); j >= 0 && (i < 0 || any.at(j).order < q.at(i).order) {
			q, i = any, j
		}
	}
	if i >= 0 {
		return mt.matched(q.take(i), src, dst, tag)
	}
	m := mt.message()
	m.comm, m.src, m.dst, m.tag = comm, src, dst, tag
	c.sends.push(m)
	return m
}

// recv returns the message of a receive: the oldest send that matches, or a
// new one.
func (mt *matcher) recv(comm, src, dst, tag int32) *message {
	k := channelKey{comm, src, dst}
	var q *messageQueue // of the oldest send that matches
	at := -1
	look := func(sends *messageQueue) {
		if i := sends.sent(tag); i >= 0 && (q == nil || sends.at(i).order < q.at(at).order) {
			q, at = sends, i
		}
	}
	if src != trace.AnySource {
		look(&mt.channel(k).sends)
	} else {
		for s := range mt.ranks {
			if c := mt.channels[channelKey{comm, s, dst}]; c != nil {
				look(&c.sends)
			}
		}
	}
	if q != nil {
		m := q.take(at)
		return mt.matched(m, m.src, dst, m.tag)
	}
	m := mt.message()
	m.comm, m.src, m.dst, m.tag = comm, src, dst, tag
	if src != trace.AnySource {
		mt.channel(k).recvs.push(m)
		return m
	}
	if mt.anySrc[k] == nil {
		mt.anySrc[k] = &messageQueue{}
	}
	mt.anySrc[k].push(m)
	return m
}

func (mt *matcher) matched(m *message, src, dst, tag int32) *message {
	m.src, m.dst, m.tag = src, dst, tag
	mt.pending--
	return m
}

// withdraw takes back a message that is posted on one side only.
func (mt *matcher) withdraw(m *message) {
	k := channelKey{m.comm, m.src, m.dst}
	q := mt.anySrc[k]
	if m.src != trace.AnySource {
		c := mt.channel(k)
		if q = &c.sends; m.sendAt == unknown {
			q = &c.recvs
		}
	}
	for i := range q.len() {
		if q.at(i) == m {
			q.take(i)
			mt.pending--
			mt.drop(m) // for the side that does not come
			return
		}
	}
}

// leftover returns the oldest message posted on one side only.
func (mt *matcher) leftover() *message {
	var oldest *message
	look := func(q *messageQueue) {
		if q.len() > 0 && (oldest == nil || q.at(0).order < oldest.order) {
			oldest = q.at(0)
		}
	}
	for _, c := range mt.channels {
		look(&c.sends)
		look(&c.recvs)
	}
	for _, q := range mt.anySrc {
		look(q)
	}
	return oldest
}
