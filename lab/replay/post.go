package replay

import (
	"fmt"

	"pinwheel/trace"
)

// useOf returns the use of a record among those of its call, nil if it needed none.
func useOf(uses []bufferUse, rec *trace.Record) *bufferUse {
	for i := range uses {
		if n := &uses[i].need; n.dir == rec.Dir && n.rng.Start == rec.Addr {
			return &uses[i]
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
	if c.isNonblocking() {
		return t + int64(e.opt.Network.OverheadNs), true, e.postRequest(r, t)
	}
	// Counting the post itself keeps this rank from being woken before all of
	// the operation is posted.
	r.unresolved, r.latestNs = 1, t
	switch {
	case r.coll != nil:
		return e.arrive(r, nil, t)
	case c.op == trace.OpWait:
		for i := range c.recs {
			q, err := r.request(&c.recs[i])
			if err != nil {
				return 0, false, err
			}
			r.awaitRequest(q)
		}
	case c.op == trace.OpFree || c.op == trace.OpProbe: // the receive that follows a probe waits
	case isOneSided(c.op):
		r.latestNs = e.access(r, r.uses, t)
	case len(c.recs) > len(r.msgs):
		return 0, false, e.at(r, fmt.Errorf("%d buffers in one call, at most %d are possible", len(c.recs), len(r.msgs)))
	default:
		for i := range c.recs {
			rec := &c.recs[i]
			if r.msgs[i], err = e.postMessage(r, rec, useOf(r.uses, rec), t); err != nil {
				return 0, false, err
			}
			r.await(r.msgs[i], rec.Dir != trace.DirWrite)
			if rec.Peer == trace.Elsewhere {
				r.latestNs = max(r.latestNs, t+c.durationNs)
			}
		}
	}
	r.unresolved--
	return r.latestNs, r.unresolved == 0, nil
}

// postRequest starts what does not block, at t.
func (e *engine) postRequest(r *rank, t int64) error {
	c := &r.call
	if r.coll == nil && len(c.recs) > len(r.msgs) {
		return e.at(r, fmt.Errorf("%d buffers in one call, at most %d are possible", len(c.recs), len(r.msgs)))
	}
	q, err := r.newRequest(t)
	switch {
	case err != nil:
		return err
	case r.coll != nil:
		_, _, err := e.arrive(r, q, t)
		return err
	case isOneSided(c.op):
		q.doneNs = e.access(r, q.uses, t)
		return nil
	}
	for i := range c.recs {
		rec := &c.recs[i]
		q.isSend[i] = rec.Dir != trace.DirWrite
		q.isElsewhere = q.isElsewhere || rec.Peer == trace.Elsewhere
		if q.msgs[i], err = e.postMessage(r, rec, useOf(q.uses, rec), t); err != nil {
			return err
		}
	}
	return nil
}

func isOneSided(op trace.Op) bool {
	return op == trace.OpPut || op == trace.OpGet || op == trace.OpAccumulate
}

// access carries out a one-sided operation that is posted at t, and returns when it has ended.
func (e *engine) access(r *rank, uses []bufferUse, t int64) int64 {
	c := &r.call
	endNs := t
	for i := range c.recs {
		rec := &c.recs[i]
		if rec.Peer == trace.NoPeer {
			continue
		}
		start, end, free := e.opt.Network.oneSided(rec.Op, rec.Bytes, t, r.txFree)
		r.txFree = free
		endNs = max(endNs, int64(end))
		e.transferring(r, useOf(uses, rec), int64(start), endNs)
	}
	return endNs
}

// postRecorded lets an operation last as long as it was recorded.
func (e *engine) postRecorded(r *rank, t int64) (endNs int64, known bool, err error) {
	c := &r.call
	endNs = t + c.durationNs/int64(r.rounds)
	for i := range r.uses {
		e.transferring(r, &r.uses[i], t, endNs)
	}
	switch {
	case c.isNonblocking():
		_, err = r.newRequest(t)
	case c.op == trace.OpWait:
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
	doneNs, waiter := m.side(send)
	if *doneNs == unknown {
		*waiter = r
		r.unresolved++
		return
	}
	r.latestNs = max(r.latestNs, *doneNs)
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

// postMessage posts one side of a message at t; nil if there is no peer, or none in this trace.
func (e *engine) postMessage(r *rank, rec *trace.Record, u *bufferUse, t int64) (*message, error) {
	if rec.Peer == trace.NoPeer || rec.Peer == trace.Elsewhere {
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
		m.recvAt, m.recvLine, m.recvUse = t, rec.Line, u
	} else {
		m = e.match.send(lc.id, int32(r.id), rec.Peer, rec.Tag)
		m.sendAt, m.bytes, m.sendLine, m.sendUse = t, rec.Bytes, rec.Line, u
		m.rendezvous = rec.Op == trace.OpSsend || rec.Op != trace.OpBsend && rec.Bytes >= e.opt.Network.EagerBytes
		m.synchronous = rec.Op == trace.OpSsend
	}
	if m.sendAt == unknown {
		return m, nil
	}
	src := e.ranks[m.src]
	src.txFree = e.opt.Network.transfer(m, src.txFree)
	if m.recvAt == unknown {
		return m, nil
	}
	if m.rendezvous { // an eager send may have given its buffer back already
		e.transferring(src, m.sendUse, t, m.sendDone)
		e.transferring(e.ranks[m.dst], m.recvUse, t, m.recvDone)
	}
	e.resolve(&m.sendWaiter, m.sendDone)
	e.resolve(&m.recvWaiter, m.recvDone)
	return m, nil
}
