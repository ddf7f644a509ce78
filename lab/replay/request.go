package replay

import (
	"fmt"

	"pinwheel/trace"
)

// request is what a call has started and left to a wait.
type request struct {
	msgs        [2]*message // nil: nothing to wait for
	isSend      [2]bool     // of msgs: this side of it
	isElsewhere bool        // one of its peers is not in this trace
	meeting     *meeting    // of a nonblocking collective that not all have come to; nil: of none
	doneNs      int64       // when what is no message ends, or unknown
	waiter      *rank       // blocked until that is known
	uses        []bufferUse // of its buffers
	line        uint32
}

// newRequest keeps what the current call starts at t, with its buffers, until its wait.
func (r *rank) newRequest(t int64) (*request, error) {
	rec := &r.call.recs[0]
	if q := r.requests[rec.Req]; q != nil {
		return nil, fmt.Errorf("rank %d, line %d: request %d is still in use (posted on line %d)", r.id, rec.Line, rec.Req, q.line)
	}
	q := &request{}
	if n := len(r.freeRequests); n > 0 {
		q, r.freeRequests = r.freeRequests[n-1], r.freeRequests[:n-1]
	}
	*q = request{doneNs: t, uses: append(q.uses[:0], r.uses...), line: rec.Line}
	r.uses = r.uses[:0]
	r.requests[rec.Req] = q
	return q, nil
}

func (r *rank) request(rec *trace.Record) (*request, error) {
	q := r.requests[rec.Req]
	if q == nil {
		return nil, fmt.Errorf("rank %d, line %d: %v for request %d, which was not posted", r.id, rec.Line, rec.Op, rec.Req)
	}
	return q, nil
}

// awaitRequest adds a request to what the current call waits for.
func (r *rank) awaitRequest(q *request) {
	for i, m := range q.msgs {
		r.await(m, q.isSend[i])
	}
	if q.doneNs == unknown {
		q.waiter = r
		r.unresolved++
	} else {
		r.latestNs = max(r.latestNs, q.doneNs)
	}
	if q.isElsewhere {
		r.latestNs = max(r.latestNs, r.began+r.call.durationNs)
	}
}

// isDone tells whether all of a request has ended by t.
func (q *request) isDone(t int64) bool {
	for i, m := range q.msgs {
		if m == nil {
			continue
		}
		if doneNs, _ := m.side(q.isSend[i]); *doneNs == unknown || *doneNs > t {
			return false
		}
	}
	return q.doneNs != unknown && q.doneNs <= t
}

// endRequest gives up what a request uses, at t, and returns when that is done.
func (e *engine) endRequest(r *rank, q *request, t int64) (int64, error) {
	var err error
	for i := range q.uses {
		if t, err = e.release(r, t, &q.uses[i]); err != nil {
			return t, err
		}
	}
	for _, m := range q.msgs {
		if m != nil {
			e.match.drop(m)
		}
	}
	r.freeRequests = append(r.freeRequests, q)
	return t, nil
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
		if t, err = e.endRequest(r, q, t); err != nil {
			return t, err
		}
	}
	return t, nil
}

// detach leaves the requests of the current call to end by themselves.
func (r *rank) detach() error {
	for i := range r.call.recs {
		rec := &r.call.recs[i]
		q, err := r.request(rec)
		if err != nil {
			return err
		}
		delete(r.requests, rec.Req)
		r.detached = append(r.detached, q)
	}
	return nil
}

// finalizeRequest ends a request that was freed, at its rank's MPI_Finalize. What it sends
// still arrives; nobody can tell any more what it would have received.
func (e *engine) finalizeRequest(r *rank, q *request) {
	for i, m := range q.msgs {
		switch {
		case m == nil:
		case !q.isSend[i]:
			e.match.abandon(m, false)
		case m.rendezvous && m.recvAt == unknown:
			e.keep(m)
		}
	}
	if q.meeting != nil {
		q.meeting.abandon(r, q)
	}
}

// releaseDetached ends those requests that nobody waits for and that have ended by t, or all.
func (e *engine) releaseDetached(r *rank, t int64, all bool) (int64, error) {
	var err error
	left := r.detached[:0]
	for _, q := range r.detached {
		if !all && !q.isDone(t) {
			left = append(left, q)
			continue
		}
		if all {
			e.finalizeRequest(r, q)
		}
		if t, err = e.endRequest(r, q, t); err != nil {
			return t, err
		}
	}
	clear(r.detached[len(left):])
	r.detached = left
	return t, nil
}
