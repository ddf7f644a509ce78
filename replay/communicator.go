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
	rounds  map[uint64]*meeting // open rounds by their number on this communicator
}

// meeting is one round of a collective, complete when all members are present.
type meeting struct {
	op      trace.Op
	bytes   uint64  // the most that any of them sends or receives
	present []*rank // those that have arrived
	first   int     // who came first, and where: for messages
	line    uint32
}

// localComm is a communicator as one rank knows it.
type localComm struct {
	*communicator
	me    int    // rank in it
	round uint64 // next round
}

// communicators gives every communicator one identity for all ranks.
type communicators struct {
	byMembers map[string]*communicator
	count     int32
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
		if m < 0 || int(m) >= len(e.ranks) {
			return nil, fmt.Errorf("rank %d, line %d: communicator %d has member %d, but the trace has %d ranks", r.id, line, id, m, len(e.ranks))
		}
	}
	// Duplicates have the same members: the k-th of them here is the k-th everywhere.
	same := 0
	for _, o := range r.comms {
		if slices.Equal(o.members, members) {
			same++
		}
	}
	key := fmt.Sprint(members, same)
	c := e.comms.byMembers[key]
	if c == nil {
		c = &communicator{id: e.comms.count, members: slices.Clone(members), rounds: map[uint64]*meeting{}}
		e.comms.count++
		e.comms.byMembers[key] = c
	}
	lc := &localComm{communicator: c, me: me}
	r.comms[id] = lc
	return lc, nil
}

// arrive brings a rank to the next round of its collective at t. For the last
// member the end is known; it wakes the others.
func (e *engine) arrive(r *rank, t int64) (endNs int64, known bool, err error) {
	lc, op, line := r.coll, r.call.op, r.call.line()
	m := lc.rounds[lc.round]
	if m == nil {
		m = &meeting{op: op, first: r.id, line: line}
		lc.rounds[lc.round] = m
	}
	if m.op != op {
		return 0, false, fmt.Errorf("collectives do not match: rank %d calls %v (line %d), rank %d calls %v (line %d)",
			m.first, m.op, m.line, r.id, op, line)
	}
	m.present = append(m.present, r)
	m.bytes = max(m.bytes, r.x.bytes)
	round := lc.round
	lc.round++
	if len(m.present) < len(lc.members) {
		return 0, false, nil
	}
	delete(lc.rounds, round)
	endNs = t + e.opt.Network.collective(op, len(lc.members), m.bytes, e.opt.AlltoallPairwise)
	for _, w := range m.present {
		for i := range w.holds {
			e.transferring(w, &w.holds[i], t, endNs)
		}
		if w != r {
			e.wake(w, endNs)
		}
	}
	return endNs, true, nil
}
