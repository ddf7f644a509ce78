package replay

import "pinwheel/trace"

// unknown is a time that is not known yet.
const unknown = -1

// message is one point-to-point transfer, made by whichever side is posted first.
type message struct {
	src, dst   int32 // world ranks; src is trace.AnySource until matched
	tag        int32
	bytes      uint64 // of the send
	recvBytes  uint64 // of the posted buffer
	rendezvous bool
	sendAt     int64 // when each side was posted, or unknown
	recvAt     int64
	arrival    int64 // of an eager message at the receiver
	sendDone   int64 // when each side completes, or unknown
	recvDone   int64
	order      uint64 // of posting, for wildcards
	sendLine   uint32
	recvLine   uint32
	sendHold   *hold // registered buffers of rendezvous transfers, for policy pipeline
	recvHold   *hold
	sendWaiter *rank // blocked until this side completes
	recvWaiter *rank
	sides      int8 // that still refer to it; the last one returns it to the pool
}

// channel is the pair of queues between one sender and one receiver on one
// communicator, each in posting order: messages never overtake each other.
type channel struct {
	sends []*message // posted, not received
	recvs []*message // posted, not sent
}

type channelKey struct{ comm, src, dst int32 }

// matcher pairs sends and receives by source, destination, tag and
// communicator, with wildcards.
type matcher struct {
	channels map[channelKey]*channel
	anySrc   map[channelKey][]*message // receives from any source, key with src AnySource
	ranks    int32
	order    uint64
	free     []*message
	pending  int // messages posted on one side only
}

func newMatcher(ranks int) *matcher {
	return &matcher{channels: map[channelKey]*channel{}, anySrc: map[channelKey][]*message{}, ranks: int32(ranks)}
}

func (mt *matcher) channel(k channelKey) *channel {
	c := mt.channels[k]
	if c == nil {
		c = &channel{}
		mt.channels[k] = c
	}
	return c
}

func (mt *matcher) message() *message {
	mt.order++
	mt.pending++
	if n := len(mt.free); n > 0 {
		m := mt.free[n-1]
		mt.free = mt.free[:n-1]
		*m = message{}
		return mt.fresh(m)
	}
	return mt.fresh(&message{})
}

func (mt *matcher) fresh(m *message) *message {
	m.order, m.sides = mt.order, 2
	m.sendAt, m.recvAt, m.sendDone, m.recvDone = unknown, unknown, unknown, unknown
	return m
}

// drop gives up one side's reference.
func (mt *matcher) drop(m *message) {
	if m.sides--; m.sides == 0 {
		mt.free = append(mt.free, m)
	}
}

func tagsMatch(recv, send int32) bool { return recv == send || recv == trace.AnyTag }

// send returns the message of a send: a waiting receive, the oldest that
// matches, or a new one.
func (mt *matcher) send(comm, src, dst, tag int32) *message {
	c := mt.channel(channelKey{comm, src, dst})
	i := firstMatch(c.recvs, func(m *message) bool { return tagsMatch(m.tag, tag) })
	if len(mt.anySrc) > 0 {
		k := channelKey{comm, trace.AnySource, dst}
		any := mt.anySrc[k]
		j := firstMatch(any, func(m *message) bool { return tagsMatch(m.tag, tag) })
		if j >= 0 && (i < 0 || any[j].order < c.recvs[i].order) {
			m := any[j]
			mt.anySrc[k] = remove(any, j)
			return mt.matched(m, src, dst, tag)
		}
	}
	if i >= 0 {
		m := c.recvs[i]
		c.recvs = remove(c.recvs, i)
		return mt.matched(m, src, dst, tag)
	}
	m := mt.message()
	m.src, m.dst, m.tag = src, dst, tag
	c.sends = append(c.sends, m)
	return m
}

// recv returns the message of a receive: the oldest send that matches, or a
// new one.
func (mt *matcher) recv(comm, src, dst, tag int32) *message {
	if src != trace.AnySource {
		c := mt.channel(channelKey{comm, src, dst})
		if i := firstMatch(c.sends, func(m *message) bool { return tagsMatch(tag, m.tag) }); i >= 0 {
			m := c.sends[i]
			c.sends = remove(c.sends, i)
			return mt.matched(m, src, dst, m.tag)
		}
		m := mt.message()
		m.src, m.dst, m.tag = src, dst, tag
		c.recvs = append(c.recvs, m)
		return m
	}
	var best *channel
	bestAt := -1
	for s := range mt.ranks {
		c := mt.channels[channelKey{comm, s, dst}]
		if c == nil {
			continue
		}
		i := firstMatch(c.sends, func(m *message) bool { return tagsMatch(tag, m.tag) })
		if i >= 0 && (best == nil || c.sends[i].order < best.sends[bestAt].order) {
			best, bestAt = c, i
		}
	}
	if best != nil {
		m := best.sends[bestAt]
		best.sends = remove(best.sends, bestAt)
		return mt.matched(m, m.src, dst, m.tag)
	}
	m := mt.message()
	m.src, m.dst, m.tag = src, dst, tag
	k := channelKey{comm, src, dst}
	mt.anySrc[k] = append(mt.anySrc[k], m)
	return m
}

func (mt *matcher) matched(m *message, src, dst, tag int32) *message {
	m.src, m.dst, m.tag = src, dst, tag
	mt.pending--
	return m
}

func firstMatch(q []*message, ok func(*message) bool) int {
	for i, m := range q {
		if ok(m) {
			return i
		}
	}
	return -1
}

// remove takes one message out, in order. Queues are as short as what is
// outstanding, and the first is taken nearly always.
func remove(q []*message, i int) []*message {
	copy(q[i:], q[i+1:])
	q[len(q)-1] = nil
	return q[:len(q)-1]
}
