package replay

import (
	"pinwheel/mem"
	"pinwheel/trace"
)

// need is one buffer that a call needs registered.
type need struct {
	rng   mem.Range
	op    trace.Op
	dir   trace.Dir
	stack uint32
}

func (n *need) receives() bool { return n.dir == trace.DirWrite }

// expansion is one round of a call: what transports register at once.
type expansion struct {
	needs []need
	bytes uint64 // the most that this rank sends or receives in the round
}

// rounds is the number of rounds that a collective takes.
func rounds(op trace.Op, members int, pairwise bool) int {
	if pairwise && (op == trace.OpAlltoall || op == trace.OpAlltoallv) {
		return max(1, members-1)
	}
	return 1
}

// collective fills in one round of a collective as rank me of the communicator,
// the way that transports work: bcast and reduce use the buffer as a whole;
// alltoall sends a slice to every other member, all slices at once or one
// pair in each round. The slice to itself is copied, not sent.
func (x *expansion) collective(c *call, members []int32, me, round int, pairwise bool, threshold uint64) error {
	x.needs, x.bytes = x.needs[:0], 0
	var sent, received uint64
	add := func(r *trace.Record, addr mem.Addr, bytes uint64) error {
		if r.Dir == trace.DirWrite {
			received += bytes
		} else {
			sent += bytes
		}
		if bytes < threshold || bytes == 0 {
			return nil
		}
		rng, err := mem.NewRange(addr, bytes)
		if err != nil {
			return err
		}
		x.needs = append(x.needs, need{rng, r.Op, r.Dir, r.Stack})
		return nil
	}
	n := len(members)
	for i := range c.recs {
		r := &c.recs[i]
		switch r.Op {
		case trace.OpAlltoall:
			slice := r.Bytes / uint64(n)
			for peer := range n {
				if peer == me || pairwise && peer != partner(r.Dir, me, round, n) {
					continue
				}
				if err := add(r, r.Addr+mem.Addr(uint64(peer)*slice), slice); err != nil {
					return err
				}
			}
		case trace.OpAlltoallv:
			if r.Peer == members[me] || pairwise && r.Peer != members[partner(r.Dir, me, round, n)] {
				continue
			}
			if err := add(r, r.Addr, r.Bytes); err != nil {
				return err
			}
		case trace.OpBarrier:
		default:
			if err := add(r, r.Addr, r.Bytes); err != nil {
				return err
			}
		}
	}
	x.bytes = max(sent, received)
	return nil
}

// pointToPoint fills in the buffers of a send, a receive or both.
func (x *expansion) pointToPoint(c *call, threshold uint64) error {
	x.needs = x.needs[:0]
	for i := range c.recs {
		r := &c.recs[i]
		if r.Bytes < threshold || r.Bytes == 0 || r.Peer == trace.NoPeer {
			continue
		}
		rng, err := mem.NewRange(r.Addr, r.Bytes)
		if err != nil {
			return err
		}
		x.needs = append(x.needs, need{rng, r.Op, r.Dir, r.Stack})
	}
	return nil
}

// partner is the member that rank me of n exchanges with in a round of the
// pairwise algorithm.
func partner(d trace.Dir, me, round, n int) int {
	step := round + 1
	if d == trace.DirWrite {
		return (me - step + n) % n
	}
	return (me + step) % n
}
