package replay

import (
	"fmt"

	"pinwheel/trace"
)

// request is a nonblocking operation from post to wait.
type request struct {
	msg  *message // nil: nothing to wait for
	send bool
	hold hold // the zero value if its buffer needs no registration
	line uint32
}

func (q *request) held() *hold {
	if q.hold.need.rng.Empty() {
		return nil
	}
	return &q.hold
}

// held returns the hold of a record of the current call, nil if it needed none.
func (r *rank) held(rec *trace.Record) *hold {
	for i := range r.holds {
		if n := &r.holds[i].need; n.dir == rec.Dir && n.rng.Start == rec.Addr {
			return &r.holds[i]
		}
	}
	return nil
}

// post hands the operation to the network at t. known is false if its end
// depends on another rank, which will wake this one.
func (e *engine) post(r *rank, t int64) (endNs int64, known bool, err error) {
	if e.opt.Timeline == Recorded {
		return e.postRecorded(r, t)
	}
	c := &r.call
	// Counting the post itself keeps this rank from being woken before all of
	// the operation is posted.
	r.unresolved, r.latestNs = 1, t
	switch {
	case r.coll != nil:
		return e.arrive(r, t)
	case c.op == trace.OpWait:
		for i := range c.recs {
			q, err := r.request(&c.recs[i])
			if err != nil {
				return 0, false, err
			}
			r.await(q.msg, q.send)
		}
	case c.op == trace.OpIsend || c.op == trace.OpIrecv:
		q, err := r.newRequest(&c.recs[0])
		if err != nil {
			return 0, false, err
		}
		q.msg, err = e.postMessage(r, &c.recs[0], q.held(), t)
		return t + int64(e.opt.Network.OverheadNs), true, err
	case len(c.recs) > len(r.msgs):
		return 0, false, e.at(r, fmt.Errorf("%d buffers in one call, at most %d are possible", len(c.recs), len(r.msgs)))
	default:
		for i := range c.recs {
			rec := &c.recs[i]
			if r.msgs[i], err = e.postMessage(r, rec, r.held(rec), t); err != nil {
				return 0, false, err
			}
			r.await(r.msgs[i], rec.Dir != trace.DirWrite)
		}
	}
	r.unresolved--
	return r.latestNs, r.unresolved == 0, nil
}

// postRecorded lets an operation last as long as it was recorded.
func (e *engine) postRecorded(r *rank, t int64) (endNs int64, known bool, err error) {
	c := &r.call
	endNs = t + c.durationNs/int64(r.rounds)
	for i := range r.holds {
		e.transferring(r, &r.holds[i], t, endNs)
	}
	switch c.op {
	case trace.OpIsend, trace.OpIrecv:
		_, err = r.newRequest(&c.recs[0])
	case trace.OpWait:
		for i := range c.recs {
			if _, err := r.request(&c.recs[i]); err != nil {
				return 0, false, err
			}
		}
	}
	return endNs, true, err
}

// await adds one side of a message to what the current call waits for.
func (r *rank) await(m *message, send bool) {
	if m == nil {
		return
	}
	doneNs, waiter := m.recvDone, &m.recvWaiter
	if send {
		doneNs, waiter = m.sendDone, &m.sendWaiter
	}
	if doneNs == unknown {
		*waiter = r
		r.unresolved++
		return
	}
	r.latestNs = max(r.latestNs, doneNs)
}

// resolve tells the rank that waits for one side of a message, once its
// completion is known.
func (e *engine) resolve(waiter **rank, doneNs int64) {
	w := *waiter
	if w == nil || doneNs == unknown {
		return
	}
	*waiter = nil
	w.latestNs = max(w.latestNs, doneNs)
	if w.unresolved--; w.unresolved == 0 {
		e.wake(w, w.latestNs)
	}
}

// postMessage posts one side of a message at t; nil if there is no peer.
func (e *engine) postMessage(r *rank, rec *trace.Record, h *hold, t int64) (*message, error) {
	if rec.Peer == trace.NoPeer {
		return nil, nil
	}
	if int(rec.Peer) >= len(e.ranks) {
		return nil, e.at(r, fmt.Errorf("peer %d, but the trace has %d ranks", rec.Peer, len(e.ranks)))
	}
	lc, err := e.local(r, rec.Comm, rec.Line)
	if err != nil {
		return nil, err
	}
	var m *message
	if rec.Dir == trace.DirWrite {
		m = e.match.recv(lc.id, rec.Peer, int32(r.id), rec.Tag)
		m.recvAt, m.recvBytes, m.recvLine, m.recvHold = t, rec.Bytes, rec.Line, h
	} else {
		m = e.match.send(lc.id, int32(r.id), rec.Peer, rec.Tag)
		m.sendAt, m.bytes, m.sendLine, m.sendHold = t, rec.Bytes, rec.Line, h
		m.rendezvous = rec.Bytes >= e.opt.Network.EagerBytes || rec.Op == trace.OpSsend
	}
	if m.sendAt == unknown {
		return m, nil
	}
	src := e.ranks[m.src]
	src.txFree = e.opt.Network.transfer(m, src.txFree)
	if m.recvAt == unknown {
		return m, nil
	}
	if m.bytes > m.recvBytes {
		return nil, fmt.Errorf("message does not fit: rank %d sends %d bytes (line %d), rank %d receives %d (line %d)",
			m.src, m.bytes, m.sendLine, m.dst, m.recvBytes, m.recvLine)
	}
	if m.rendezvous { // an eager send may have given its buffer back already
		e.transferring(src, m.sendHold, t, m.sendDone)
		e.transferring(e.ranks[m.dst], m.recvHold, t, m.recvDone)
	}
	e.resolve(&m.sendWaiter, m.sendDone)
	e.resolve(&m.recvWaiter, m.recvDone)
	return m, nil
}

// newRequest keeps a nonblocking operation, with its buffer, until its wait.
func (r *rank) newRequest(rec *trace.Record) (*request, error) {
	if q := r.requests[rec.Req]; q != nil {
		return nil, fmt.Errorf("rank %d, line %d: request %d is still in use (posted on line %d)", r.id, rec.Line, rec.Req, q.line)
	}
	q := &request{}
	if n := len(r.freeRequests); n > 0 {
		q, r.freeRequests = r.freeRequests[n-1], r.freeRequests[:n-1]
	}
	*q = request{send: rec.Dir != trace.DirWrite, line: rec.Line}
	if len(r.holds) > 0 {
		q.hold = r.holds[0]
		r.holds = r.holds[:0]
	}
	r.requests[rec.Req] = q
	return q, nil
}

func (r *rank) request(rec *trace.Record) (*request, error) {
	q := r.requests[rec.Req]
	if q == nil {
		return nil, fmt.Errorf("rank %d, line %d: wait for request %d, which was not posted", r.id, rec.Line, rec.Req)
	}
	return q, nil
}

// completeWait ends the nonblocking operations of a wait at t and returns
// when that is done.
func (e *engine) completeWait(r *rank, t int64) (int64, error) {
	for i := range r.call.recs {
		rec := &r.call.recs[i]
		q, err := r.request(rec)
		if err != nil {
			return t, err
		}
		delete(r.requests, rec.Req)
		if h := q.held(); h != nil {
			if t, err = e.release(r, t, h); err != nil {
				return t, err
			}
		}
		if q.msg != nil {
			e.match.drop(q.msg)
		}
		r.freeRequests = append(r.freeRequests, q)
	}
	return t, nil
}
