package replay

import (
	"fmt"
	"strings"

	"pinwheel/trace"
)

// shownRanks is how many ranks an error about all of them spells out.
const shownRanks = 8

// stuck finds a way on where no rank can go on, or reports that there is none.
// The program did go on. So its MPI library has kept messages for receivers
// that came later, however large they were; or what a rank waits for is not in
// the trace, which says that it lacks calls. Where a rank's records ended
// before finalize, those that wait for it end with it: the trace was cut off.
func (e *engine) stuck() error {
	if m := e.oldestBlockedSend(); m != nil {
		e.keep(m)
		e.resolve(&m.sendWaiter, max(m.sendDone, e.now))
		return nil
	}
	torn := false
	for _, r := range e.ranks {
		torn = torn || r.torn
	}
	switch {
	case torn:
	case e.incomplete:
		e.abandon()
		return nil
	default:
		return e.deadlock()
	}
	for _, r := range e.ranks {
		if r.state != finished {
			r.torn = true
			e.finish(r, r.began)
		}
	}
	return nil
}

// keep lets a send end before its receiver has come: the MPI library keeps the message.
func (e *engine) keep(m *message) {
	m.rendezvous = false
	src := e.ranks[m.src]
	src.txFree = e.opt.Network.transfer(m, src.txFree)
	m.sendUse = nil // the buffer may be given back before the message is taken
}

// oldestBlockedSend returns the message that was sent first of those that a
// sender waits for and no receiver has come for.
func (e *engine) oldestBlockedSend() (oldest *message) {
	look := func(m *message, send bool) {
		if m != nil && send && m.rendezvous && !m.synchronous && m.sendDone == unknown && m.recvAt == unknown &&
			(oldest == nil || m.order < oldest.order) {
			oldest = m
		}
	}
	for _, r := range e.ranks {
		if r.state == finished {
			continue
		}
		for i, m := range r.msgs {
			look(m, i < len(r.call.recs) && r.call.recs[i].Dir != trace.DirWrite)
		}
		if r.call.op != trace.OpWait {
			continue
		}
		for i := range r.call.recs {
			if q := r.requests[r.call.recs[i].Req]; q != nil {
				for k, m := range q.msgs {
					look(m, q.isSend[k])
				}
			}
		}
	}
	return oldest
}

// abandon lets the rank that has been waiting longest go on, after the time that its call took.
func (e *engine) abandon() {
	var r *rank
	for _, o := range e.ranks {
		if o.state != finished && (r == nil || o.began < r.began) {
			r = o
		}
	}
	switch {
	case r.coll != nil:
		r.meeting.abandon(r, nil)
	case r.call.op == trace.OpWait:
		for i := range r.call.recs {
			if q := r.requests[r.call.recs[i].Req]; q != nil {
				e.match.abandonRequest(r, q)
			}
		}
	default:
		for i, m := range r.msgs {
			if m != nil {
				e.match.abandon(m, r.call.recs[i].Dir != trace.DirWrite)
			}
		}
	}
	r.unresolved = 0
	e.wake(r, max(e.now, r.latestNs, r.began+r.call.durationNs))
}

// abandon ends one side's wait. Where the other side has not come it is not waited for any longer.
func (mt *matcher) abandon(m *message, send bool) {
	_, waiter := m.side(send)
	*waiter = nil
	if send {
		m.sendUse = nil
	} else {
		m.recvUse = nil
	}
	if m.sendAt == unknown || m.recvAt == unknown {
		mt.withdraw(m)
	}
}

// abandon ends a member's wait, who counts as present all the same.
func (m *meeting) abandon(r *rank, q *request) {
	for i := range m.present {
		if p := &m.present[i]; p.rank == r && p.request == q {
			p.isGone = true
		}
	}
}

// abandonRequest ends the wait for all that has not ended.
func (mt *matcher) abandonRequest(r *rank, q *request) {
	for i, m := range q.msgs {
		if m != nil {
			mt.abandon(m, q.isSend[i])
		}
	}
	if q.meeting != nil {
		q.meeting.abandon(r, q)
	}
}

func (e *engine) deadlock() error {
	var who []string
	for _, r := range e.ranks {
		if r.state == finished {
			continue
		}
		if len(who) == shownRanks {
			who = append(who, fmt.Sprintf("and %d more", e.live-shownRanks))
			break
		}
		who = append(who, fmt.Sprintf("rank %d in %s (line %d)", r.id, r.describe(), r.call.line()))
	}
	return fmt.Errorf("deadlock: %s", strings.Join(who, ", "))
}

// describe says what a rank is waiting for.
func (r *rank) describe() string {
	c := &r.call
	switch {
	case r.coll != nil:
		return fmt.Sprintf("%v on communicator %d", c.op, c.recs[0].Comm)
	case c.op == trace.OpWait:
		for i := range c.recs {
			if q := r.requests[c.recs[i].Req]; q != nil && !q.isDone(maxTimeNs) {
				return q.describe()
			}
		}
	}
	rec := &c.recs[0]
	return fmt.Sprintf("%v with %d tag %d", c.op, rec.Peer, rec.Tag)
}

// describe says what a request is waiting for.
func (q *request) describe() string {
	for i, m := range q.msgs {
		switch {
		case m == nil:
		case q.isSend[i] && m.sendDone == unknown:
			return fmt.Sprintf("wait for isend to %d tag %d from line %d", m.dst, m.tag, q.line)
		case !q.isSend[i] && m.recvDone == unknown:
			return fmt.Sprintf("wait for irecv from %d tag %d from line %d", m.src, m.tag, q.line)
		}
	}
	return fmt.Sprintf("wait for the collective from line %d", q.line)
}

// leftovers reports a message that only one side knows of.
func (e *engine) leftovers() error {
	if e.incomplete {
		return nil
	}
	for _, r := range e.ranks {
		if r.torn {
			return nil
		}
	}
	if e.match.pending == 0 {
		return nil
	}
	m := e.match.leftover()
	if m.sendAt != unknown {
		return fmt.Errorf("no receive for a message: rank %d sends %d bytes to rank %d with tag %d (line %d); %d unmatched in all", m.src, m.bytes, m.dst, m.tag, m.sendLine, e.match.pending)
	}
	return fmt.Errorf("no send for a receive: rank %d receives from rank %d with tag %d (line %d); %d unmatched in all", m.dst, m.src, m.tag, m.recvLine, e.match.pending)
}
