package replay

import (
	"fmt"

	"pinwheel/internal/usage"
	"pinwheel/lab/replay/pinned"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/trace"
)

// state is what a communication path does when its turn comes.
type state uint8

const (
	beginning state = iota // the compute phase is over, a call begins
	acquiring              // the next buffer is to be acquired
	posting                // all buffers are ready: post the operation
	finishing              // the operation, or round of it, has completed
	finished               // finalize has been reached
)

// rank is the communication path of one rank.
type rank struct {
	id      int
	prog    *program
	path    path
	pages   *pinned.Counter
	helper  *virtualHelper    // nil for a policy without one
	scored  *predictor.Scored // the same
	learned func()            // tells Options.Learned; nil: there is nothing to tell
	seat    *seat             // of the helper on its node; nil: it has a core of its own

	sharing Sharing
	log     useLog // of policy leave-pinned, for Clairvoyant; else nil

	call    call
	state   state
	began   int64      // the call
	coll    *localComm // of a collective
	meeting *meeting   // that this rank is or was blocked in
	round   int        // of a collective
	rounds  int
	x       expansion
	next    int // of x.needs: to be acquired next
	uses    []bufferUse
	msgs    [2]*message // of a blocking send, receive or both

	comms        map[int32]*localComm
	requests     map[uint32]*request // nonblocking, not waited for yet
	detached     []*request          // those that nobody will wait for
	freeRequests []*request
	unresolved   int     // messages that the current call still waits for
	latestNs     int64   // completion of those that are known
	txFree       float64 // time from which the adapter is free to send

	stats Counts
	usage usage.Usage
	endNs int64 // when the rank finished
	torn  bool  // its records end before finalize

	journal *Journal // nil: nobody asked for one
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
		e.finish(r, t)
		return nil
	}
	r.state = beginning
	if e.opt.Timeline == Recorded {
		t += r.call.gapNs
	} else {
		t += r.call.computeNs
	}
	e.wake(r, t)
	return nil
}

func (e *engine) finish(r *rank, t int64) {
	r.state, r.endNs, r.usage.EndNs = finished, t, t
	r.journal.close(t)
	e.live--
}

// comm runs a communication path at t until it has to wait.
func (e *engine) comm(r *rank, t int64) error {
	for {
		switch r.state {
		case beginning:
			if r.call.op == trace.OpFinalize {
				end, err := e.releaseDetached(r, t, true)
				e.finish(r, end)
				return err
			}
			if r.call.op == trace.OpUnmap {
				end, err := e.unmapped(r, t)
				if err != nil {
					return err
				}
				return e.nextCall(r, end)
			}
			if err := e.begin(r, t); err != nil {
				return err
			}
		case acquiring:
			stallNs, err := e.acquire(r, t)
			if err != nil {
				return err
			}
			if stallNs > 0 {
				e.wake(r, t+stallNs)
				return nil
			}
		case posting:
			r.state = finishing
			endNs, known, err := e.post(r, t)
			if err != nil || !known {
				return err // unknown: whoever completes it wakes this rank
			}
			if endNs > t {
				e.wake(r, endNs)
				return nil
			}
		case finishing:
			return e.complete(r, t)
		}
	}
}

// begin starts a call at t.
func (e *engine) begin(r *rank, t int64) error {
	c := &r.call
	r.began, r.coll, r.round, r.rounds = t, nil, 0, 1
	r.next, r.state = 0, acquiring
	switch {
	case isCollective(c.op):
		lc, err := e.local(r, c.recs[0].Comm, c.line())
		if err != nil {
			return err
		}
		r.x.atOnce = c.isNonblocking()
		r.coll, r.rounds = lc, r.x.rounds(c.op, len(lc.members))
		return e.at(r, r.x.collective(c, lc.members, lc.me, 0))
	case c.op == trace.OpWait, c.op == trace.OpFree, c.op == trace.OpProbe:
		r.x.reset()
		return nil
	}
	return e.at(r, r.x.pointToPoint(c))
}

// unmapped ends buffers at t, and returns when that is done. A cache hears of it at its next look at a watched word.
func (e *engine) unmapped(r *rank, t int64) (int64, error) {
	for i := range r.call.recs {
		c := &r.call.recs[i]
		rng := mem.Range{Start: c.Addr, End: c.Addr + mem.Addr(c.Bytes)} // the reader has checked it
		stallNs, err := r.path.unmapped(t, rng)
		if err != nil {
			return t, e.at(r, err)
		}
		t += stallNs
	}
	return t, nil
}

func isCollective(op trace.Op) bool {
	switch op {
	case trace.OpBarrier, trace.OpBcast, trace.OpReduce, trace.OpAllreduce, trace.OpAllgather, trace.OpAlltoall, trace.OpAlltoallv,
		trace.OpGather, trace.OpScatter, trace.OpScan, trace.OpReduceScatter, trace.OpNeighbor:
		return true
	}
	return false
}

// acquire takes the next buffer. Each stall is a turn of its own, so that
// the helper works on meanwhile.
func (e *engine) acquire(r *rank, t int64) (stallNs int64, err error) {
	if r.next == len(r.x.needs) {
		r.state = posting
		return 0, nil
	}
	n := &r.x.needs[r.next]
	r.next++
	e.largestPages = max(e.largestPages, n.rng.Pages())
	r.uses = append(r.uses, bufferUse{})
	stallNs, err = r.path.acquire(t, n, &r.uses[len(r.uses)-1])
	return stallNs, e.at(r, err)
}

// complete ends the operation at t: buffers are released, and the next round
// or call is scheduled.
func (e *engine) complete(r *rank, t int64) (err error) {
	for i := range r.uses {
		if t, err = e.release(r, t, &r.uses[i]); err != nil {
			return err
		}
	}
	r.uses = r.uses[:0]
	for i, m := range r.msgs {
		if m != nil {
			e.match.drop(m)
			r.msgs[i] = nil
		}
	}
	switch r.call.op {
	case trace.OpWait:
		t, err = e.completeWait(r, t)
	case trace.OpFree:
		err = r.detach()
	}
	if err == nil && len(r.detached) > 0 {
		t, err = e.releaseDetached(r, t, false)
	}
	if err != nil {
		return err
	}
	if r.round++; r.round == r.rounds {
		return e.nextCall(r, t)
	}
	r.next, r.state = 0, acquiring
	e.wake(r, t)
	return e.at(r, r.x.collective(&r.call, r.coll.members, r.coll.me, r.round))
}

// release gives a buffer back at t and returns when that is done.
func (e *engine) release(r *rank, t int64, u *bufferUse) (int64, error) {
	stallNs, err := r.path.release(t, u)
	return t + stallNs, e.at(r, err)
}

// transferring tells a policy that registers while it transfers.
func (e *engine) transferring(r *rank, u *bufferUse, startNs, endNs int64) {
	if e.pipelined && u != nil {
		r.path.transferring(u, startNs, endNs)
	}
}

// at adds the place of an error, if it is one.
func (e *engine) at(r *rank, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("rank %d, line %d (%v): %w", r.id, r.call.line(), r.call.op, err)
}
