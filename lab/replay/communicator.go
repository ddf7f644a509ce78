package replay

import (
	"fmt"
	"slices"

	"pinwheel/trace"
)

// communicator is one communicator of the program, shared by its members.
type communicator struct {
	id      int32
	members []int32
	here    int                 // members that the trace has; the others are trace.Elsewhere
	rounds  map[uint64]*meeting // open rounds by their number on this communicator
}

// meeting is one round of a collective, complete when all members are present.
type meeting struct {
	op      trace.Op
	bytes   uint64        // the most that any of them sends or receives
	present []participant // those that have arrived
	first   int           // who came first, and where: for messages
	line    uint32
}

// participant is a member that has arrived at a meeting and is blocked there,
// or has a request that ends with the meeting.
type participant struct {
	rank    *rank
	request *request
	isGone  bool // it has gone on without the others; see abandon
}

// localComm is a communicator as one rank knows it.
type localComm struct {
	*communicator
	me    int    // rank in it
	round uint64 // next round
}

// communicators gives every communicator one identity for all ranks.
type communicators struct {
	byKey map[string]*communicator
	count int32
}

// key is the same for a communicator on all its members.
func (cs *communicators) key(r *rank, id int32, members []int32) string {
	if name := r.prog.stream.CommName(id); name != 0 {
		return fmt.Sprintf("%v named %x", members, name)
	}
	// Duplicates have the same members: the k-th of them here is the k-th everywhere.
	same := 0
	for i, o := range r.comms {
		if r.prog.stream.CommName(i) == 0 && slices.Equal(o.members, members) {
			same++
		}
	}
	return fmt.Sprint(members, same)
}

// local resolves a rank's communicator ID.
func (e *engine) local(r *rank, id int32, line uint32) (*localComm, error) {
	if lc := r.comms[id]; lc != nil {
		return lc, nil
	}
	members := r.prog.stream.Comm(id)
	me := slices.Index(members, int32(r.id))
	if me < 0 {
		return nil, fmt.Errorf("rank %d, line %d: communicator %d is not declared, or this rank is no member of it", r.id, line, id)
	}
	for _, m := range members {
		if m < 0 && m != trace.Elsewhere || int(m) >= len(e.ranks) {
			return nil, fmt.Errorf("rank %d, line %d: communicator %d has member %d, but the trace has %d ranks", r.id, line, id, m, len(e.ranks))
		}
	}
	key := e.comms.key(r, id, members)
	c := e.comms.byKey[key]
	if c == nil {
		c = &communicator{id: e.comms.count, members: slices.Clone(members), rounds: map[uint64]*meeting{}}
		for _, m := range members {
			if m != trace.Elsewhere {
				c.here++
			}
		}
		e.comms.count++
		e.comms.byKey[key] = c
	}
	lc := &localComm{communicator: c, me: me}
	r.comms[id] = lc
	return lc, nil
}

// arrive brings a rank to the next round of its collective at t, with a request
// if it does not wait there. For the last member the end is known; that
// wakes the others.
func (e *engine) arrive(r *rank, q *request, t int64) (endNs int64, known bool, err error) {
	lc, op, line := r.coll, r.call.op, r.call.line()
	m := lc.rounds[lc.round]
	if m == nil {
		m = &meeting{op: op, first: r.id, line: line}
		lc.rounds[lc.round] = m
	}
	if m.op != op && !e.incomplete {
		return 0, false, fmt.Errorf("collectives do not match: rank %d calls %v (line %d), rank %d calls %v (line %d)",
			m.first, m.op, m.line, r.id, op, line)
	}
	m.present = append(m.present, participant{rank: r, request: q})
	if q == nil {
		r.meeting = m
	} else {
		q.doneNs, q.meeting = unknown, m
	}
	m.bytes = max(m.bytes, r.x.bytes)
	round := lc.round
	lc.round++
	if len(m.present) < lc.here {
		return 0, false, nil
	}
	delete(lc.rounds, round)
	endNs = t + e.opt.Network.collective(op, len(lc.members), m.bytes, r.x.paired())
	for _, p := range m.present {
		w, uses := p.rank, p.rank.uses
		if p.isGone {
			continue
		}
		if p.request != nil {
			uses = p.request.uses
		}
		for i := range uses {
			e.transferring(w, &uses[i], t, endNs)
		}
		switch {
		case p.request != nil:
			p.request.doneNs, p.request.meeting = endNs, nil
			e.resolve(&p.request.waiter, endNs)
		case w != r:
			e.wake(w, endNs)
		}
	}
	return endNs, true, nil
}
