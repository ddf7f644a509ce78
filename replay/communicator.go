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

// meeting is one round of a collective, complete when all members are there.
type meeting struct {
	op      trace.Op
	arrived int
	bytes   uint64
	last    int64 // arrival of the last so far
	rank    int   // who came first, and where: for messages
	line    uint32
	waiting []*rank
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

// arrive brings a rank to its next round. done is true, with the time at
// which the round ends, for the last member; the others are woken with it.
func (e *engine) arrive(r *rank, lc *localComm, op trace.Op, bytes uint64, t int64, line uint32) (end int64, done bool, err error) {
	m := lc.rounds[lc.round]
	if m == nil {
		m = &meeting{op: op, rank: r.id, line: line}
		lc.rounds[lc.round] = m
	}
	if m.op != op {
		return 0, false, fmt.Errorf("collectives do not match: rank %d calls %v (line %d) where rank %d calls %v (line %d)", r.id, op, line, m.rank, m.op, m.line)
	}
	m.arrived++
	m.bytes, m.last = max(m.bytes, bytes), max(m.last, t)
	round := lc.round
	lc.round++
	if m.arrived < len(lc.members) {
		m.waiting = append(m.waiting, r)
		return 0, false, nil
	}
	delete(lc.rounds, round)
	end = m.last + e.opt.Network.collective(op, len(lc.members), m.bytes, e.opt.AlltoallPairwise)
	for _, w := range append(m.waiting, r) {
		for i := range w.holds {
			e.transferring(int32(w.id), &w.holds[i], m.last, end)
		}
		if w != r {
			e.wake(w, end)
		}
	}
	return end, true, nil
}
