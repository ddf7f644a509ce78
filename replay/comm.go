package replay

import (
	"fmt"

	"pinwheel/trace"
)

// state is what a communication path does when its turn comes.
type state uint8

const (
	beginning state = iota // the compute phase is over, a call begins
	acquiring              // the next buffer of the round is acquired
	posting                // all buffers are ready: post the operation
	finishing              // the round or operation has completed
	finished               // finalize has been reached
)

// rank is the communication path of one rank.
type rank struct {
	id   int
	prog *program
	path path
	pins *pins
	// helper is nil for policies without one.
	helper *virtualHelper

	call   call
	state  state
	begin  int64 // of the call
	round  int   // of a collective
	rounds int
	coll   *localComm
	x      expansion
	next   int // buffer to acquire
	holds  []hold
	msgs   [2]*message // of a blocking send, receive or both

	comms    map[int32]*localComm
	requests map[uint32]*request // nonblocking, not waited for yet

	unresolved int     // messages that the current call still waits for
	latest     int64   // completion of those that are known
	txFree     float64 // time from which the adapter is free to send
	endNs      int64   // when the rank finished
	calls      int64
	stats      counters
	usage      usage
	torn       bool // the records ended before finalize
}

// request is a nonblocking operation from post to wait.
type request struct {
	msg  *message // nil: nothing to wait for
	send bool
	hold hold // the zero value if the buffer is below the threshold
	line uint32
}

func (q *request) held() *hold {
	if q.hold.need.rng.Empty() {
		return nil
	}
	return &q.hold
}

// held returns the hold of a record of the current call, nil below the threshold.
func (r *rank) held(rec *trace.Record) *hold {
	for i := range r.holds {
		if n := &r.holds[i].need; n.dir == rec.Dir && n.rng.Start == rec.Addr {
			return &r.holds[i]
		}
	}
	return nil
}

// nextCall reads the next call and schedules its beginning; t is the end of
// the previous one.
func (e *engine) nextCall(r *rank, t int64) error {
	ok, err := r.prog.next(&r.call)
	if err != nil {
		return err
	}
	if !ok {
		r.torn = true
		return e.finish(r, t)
	}
	r.calls++
	r.state = beginning
	if e.opt.Timeline == Recorded {
		t += r.call.gapNs
	} else {
		t += r.call.computeNs
	}
	e.wake(r, t)
	return nil
}

func (e *engine) finish(r *rank, t int64) error {
	r.state, r.endNs, r.usage.endNs = finished, t, t
	e.live--
	return r.path.close(t)
}

// comm runs a communication path at t until it has to wait.
func (e *engine) comm(r *rank, t int64) error {
	for {
		switch r.state {
		case beginning:
			if r.call.op == trace.OpFinalize {
				return e.finish(r, t)
			}
			if err := e.start(r, t); err != nil {
				return err
			}
		case acquiring:
			for r.next < len(r.x.needs) {
				r.holds = append(r.holds, hold{})
				h := &r.holds[len(r.holds)-1]
				stall, err := r.path.acquire(t, &r.x.needs[r.next], h)
				if err != nil {
					return e.at(r, err)
				}
				e.largestPages = max(e.largestPages, r.x.needs[r.next].rng.Pages())
				r.next++
				if stall > 0 {
					e.wake(r, t+stall)
					return nil
				}
			}
			r.state = posting
		case posting:
			end, known, err := e.post(r, t)
			if err != nil {
				return err
			}
			r.state = finishing
			if !known {
				return nil // whoever completes it wakes this rank
			}
			if end > t {
				e.wake(r, end)
				return nil
			}
		case finishing:
			return e.complete(r, t)
		}
	}
}

// start begins a call at t.
func (e *engine) start(r *rank, t int64) error {
	c := &r.call
	r.begin, r.round, r.rounds, r.coll = t, 0, 1, nil
	switch c.op {
	case trace.OpBarrier, trace.OpBcast, trace.OpReduce, trace.OpAllreduce, trace.OpAllgather, trace.OpAlltoall, trace.OpAlltoallv:
		lc, err := e.local(r, c.recs[0].Comm, c.line())
		if err != nil {
			return err
		}
		r.coll = lc
		r.rounds = rounds(c.op, len(lc.members), e.opt.AlltoallPairwise)
		return e.startRound(r)
	case trace.OpWait:
		r.x.needs = r.x.needs[:0]
	default:
		if err := r.x.pointToPoint(c, e.opt.ThresholdBytes); err != nil {
			return e.at(r, err)
		}
	}
	r.next, r.state = 0, acquiring
	return nil
}

func (e *engine) startRound(r *rank) error {
	if err := r.x.collective(&r.call, r.coll.members, r.coll.me, r.round, e.opt.AlltoallPairwise, e.opt.ThresholdBytes); err != nil {
		return e.at(r, err)
	}
	r.next, r.state = 0, acquiring
	return nil
}

// post hands the operation to the network at t. known is false if its end
// depends on another rank; that one will wake this one.
func (e *engine) post(r *rank, t int64) (end int64, known bool, err error) {
	c := &r.call
	first := &c.recs[0]
	if e.opt.Timeline == Recorded {
		return e.postRecorded(r, t)
	}
	r.unresolved, r.latest = 1, t // 1: the post itself, so that nothing wakes this rank before all is posted
	switch {
	case r.coll != nil:
		end, known, err = e.arrive(r, r.coll, c.op, r.x.bytes, t, c.line())
		return end, known, err
	case c.op == trace.OpWait:
		return e.postWait(r)
	case c.op == trace.OpIsend || c.op == trace.OpIrecv:
		q, err := e.newRequest(r, first)
		if err != nil {
			return 0, false, err
		}
		if q.msg, err = e.postMessage(r, first, q.held(), t); err != nil {
			return 0, false, err
		}
		return t + int64(e.opt.Network.OverheadNs), true, nil
	default:
		for i := range c.recs {
			m, err := e.postMessage(r, &c.recs[i], r.held(&c.recs[i]), t)
			if err != nil {
				return 0, false, err
			}
			r.msgs[i] = m
			if m != nil {
				e.await(r, m, c.recs[i].Dir != trace.DirWrite)
			}
		}
		r.unresolved--
		return r.latest, r.unresolved == 0, nil
	}
}

// await adds one side of a message to what the current call waits for.
func (e *engine) await(r *rank, m *message, send bool) {
	done, waiter := m.recvDone, &m.recvWaiter
	if send {
		done, waiter = m.sendDone, &m.sendWaiter
	}
	if done == unknown {
		*waiter = r
		r.unresolved++
		return
	}
	r.latest = max(r.latest, done)
}

// postMessage posts one side of a transfer.
func (e *engine) postMessage(r *rank, rec *trace.Record, h *hold, t int64) (*message, error) {
	if rec.Peer == trace.NoPeer {
		return nil, nil
	}
	if rec.Peer >= int32(len(e.ranks)) {
		return nil, fmt.Errorf("rank %d, line %d: peer %d, but the trace has %d ranks", r.id, rec.Line, rec.Peer, len(e.ranks))
	}
	lc, err := e.local(r, rec.Comm, rec.Line)
	if err != nil {
		return nil, err
	}
	me, send := int32(r.id), rec.Dir != trace.DirWrite
	var m *message
	if send {
		m = e.match.send(lc.id, me, rec.Peer, rec.Tag)
		if m.recvAt != unknown && rec.Bytes > m.bytes {
			return nil, fmt.Errorf("message does not fit: rank %d sends %d bytes (line %d) where rank %d receives %d (line %d)", r.id, rec.Bytes, rec.Line, m.dst, m.bytes, m.recvLine)
		}
		m.sendAt, m.sendLine, m.bytes = t, rec.Line, rec.Bytes
		m.rendezvous = rec.Bytes >= e.opt.Network.EagerBytes || rec.Op == trace.OpSsend
	} else {
		m = e.match.recv(lc.id, rec.Peer, me, rec.Tag)
		if m.sendAt != unknown && rec.Bytes < m.bytes {
			return nil, fmt.Errorf("message does not fit: rank %d sends %d bytes (line %d) where rank %d receives %d (line %d)", m.src, m.bytes, m.sendLine, r.id, rec.Bytes, rec.Line)
		}
		m.recvAt, m.recvLine = t, rec.Line
		if m.sendAt == unknown {
			m.bytes = rec.Bytes
		}
	}
	if m.sendAt != unknown {
		src := e.ranks[m.src]
		src.txFree = e.opt.Network.transfer(m, src.txFree)
	}
	if h != nil && send {
		m.sendHold = h
	} else if h != nil {
		m.recvHold = h
	}
	if e.pipelined && m.rendezvous && m.sendDone != unknown {
		e.transferring(m.src, m.sendHold, t, m.sendDone)
		e.transferring(m.dst, m.recvHold, t, m.recvDone)
	}
	e.resolved(m, &m.sendWaiter, m.sendDone)
	e.resolved(m, &m.recvWaiter, m.recvDone)
	return m, nil
}

// transferring tells a policy that registers while it transfers.
func (e *engine) transferring(rank int32, h *hold, start, end int64) {
	if e.pipelined && h != nil {
		e.ranks[rank].path.transferring(h, start, end)
	}
}

// resolved tells the rank that waits for one side of m, once it is known.
func (e *engine) resolved(m *message, waiter **rank, done int64) {
	w := *waiter
	if w == nil || done == unknown {
		return
	}
	*waiter = nil
	w.latest = max(w.latest, done)
	if w.unresolved--; w.unresolved == 0 {
		e.wake(w, w.latest)
	}
}

// newRequest keeps a nonblocking operation, with its buffer, until its wait.
func (e *engine) newRequest(r *rank, rec *trace.Record) (*request, error) {
	if o := r.requests[rec.Req]; o != nil {
		return nil, fmt.Errorf("rank %d, line %d: request %d is still in use (posted on line %d)", r.id, rec.Line, rec.Req, o.line)
	}
	q := &request{send: rec.Dir != trace.DirWrite, line: rec.Line}
	if len(r.holds) > 0 {
		q.hold = r.holds[0]
		r.holds = r.holds[:0]
	}
	r.requests[rec.Req] = q
	return q, nil
}

func (e *engine) request(r *rank, rec *trace.Record) (*request, error) {
	q := r.requests[rec.Req]
	if q == nil {
		return nil, fmt.Errorf("rank %d, line %d: wait for request %d, which was never posted", r.id, rec.Line, rec.Req)
	}
	return q, nil
}

func (e *engine) postWait(r *rank) (end int64, known bool, err error) {
	for i := range r.call.recs {
		q, err := e.request(r, &r.call.recs[i])
		if err != nil {
			return 0, false, err
		}
		if q.msg != nil {
			e.await(r, q.msg, q.send)
		}
	}
	r.unresolved--
	return r.latest, r.unresolved == 0, nil
}

// postRecorded lets an operation last as long as it was recorded.
func (e *engine) postRecorded(r *rank, t int64) (end int64, known bool, err error) {
	first := &r.call.recs[0]
	if r.call.op == trace.OpIsend || r.call.op == trace.OpIrecv {
		q, err := e.newRequest(r, first)
		if err != nil {
			return 0, false, err
		}
		e.transferring(int32(r.id), q.held(), t, t+r.call.durationNs)
	}
	end = t + r.call.durationNs/int64(r.rounds)
	for i := range r.holds {
		e.transferring(int32(r.id), &r.holds[i], t, end)
	}
	return end, true, nil
}

// complete ends the operation at t: buffers are released, and the next round
// or call is scheduled.
func (e *engine) complete(r *rank, t int64) error {
	for i := range r.holds {
		stall, err := r.path.release(t, &r.holds[i])
		if err != nil {
			return e.at(r, err)
		}
		t += stall
	}
	r.holds = r.holds[:0]
	for i, m := range r.msgs {
		if m != nil {
			e.match.drop(m)
			r.msgs[i] = nil
		}
	}
	if r.call.op == trace.OpWait {
		var err error
		if t, err = e.completeWait(r, t); err != nil {
			return err
		}
	}
	if r.round++; r.coll != nil && r.round < r.rounds {
		if err := e.startRound(r); err != nil {
			return err
		}
		e.wake(r, t)
		return nil
	}
	return e.nextCall(r, t)
}

func (e *engine) completeWait(r *rank, t int64) (int64, error) {
	for i := range r.call.recs {
		rec := &r.call.recs[i]
		q, err := e.request(r, rec)
		if err != nil {
			return t, err
		}
		delete(r.requests, rec.Req)
		if h := q.held(); h != nil {
			stall, err := r.path.release(t, h)
			if err != nil {
				return t, e.at(r, err)
			}
			t += stall
		}
		if q.msg != nil {
			e.match.drop(q.msg)
		}
	}
	return t, nil
}

// at names the place of an error.
func (e *engine) at(r *rank, err error) error {
	return fmt.Errorf("rank %d, line %d (%v): %w", r.id, r.call.line(), r.call.op, err)
}
