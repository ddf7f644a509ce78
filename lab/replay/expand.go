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

// expansion is what transports register and transfer at once: all of a
// point-to-point call, or one round of a collective.
type expansion struct {
	threshold uint64 // smaller buffers are copied through memory of the transport
	pairwise  bool   // blocking alltoall and alltoallv exchange with one member in each round
	atOnce    bool   // this collective doesn't block
	node      []int  // per world rank; ranks of one node share memory
	rank      int    // world rank of this one

	needs []need
	bytes uint64 // the most that this rank sends or receives
	sent  [2]uint64
}

func (x *expansion) reset() { x.needs, x.bytes, x.sent = x.needs[:0], 0, [2]uint64{} }

// shared tells whether a peer is reached through shared memory.
func (x *expansion) shared(peer int32) bool {
	return peer >= 0 && int(peer) < len(x.node) && x.node[peer] == x.node[x.rank]
}

// add takes in one buffer, or a part of it, and whether it goes through
// shared memory.
func (x *expansion) add(r *trace.Record, offset, bytes uint64, shared bool) error {
	i := 0
	if r.Dir == trace.DirWrite {
		i = 1
	}
	x.sent[i] += bytes
	x.bytes = max(x.bytes, x.sent[i])
	if bytes < x.threshold || bytes == 0 || shared {
		return nil
	}
	rng, err := mem.NewRange(r.Addr+mem.Addr(offset), bytes)
	if err != nil {
		return err
	}
	x.needs = append(x.needs, need{rng, r.Op, r.Dir, r.Stack})
	return nil
}

// pointToPoint takes in the buffers of a send, a receive or both.
func (x *expansion) pointToPoint(c *call) error {
	x.reset()
	for i := range c.recs {
		r := &c.recs[i]
		isCopied := r.Peer == trace.NoPeer || r.Op == trace.OpBsend
		if err := x.add(r, 0, r.Bytes, isCopied || x.shared(r.Peer)); err != nil {
			return err
		}
	}
	return nil
}

func (x *expansion) paired() bool { return x.pairwise && !x.atOnce }

// rounds is the number of rounds that a collective takes.
func (x *expansion) rounds(op trace.Op, members int) int {
	if x.paired() && (op == trace.OpAlltoall || op == trace.OpAlltoallv) {
		return max(1, members-1)
	}
	return 1
}

// collective takes in one round of a collective as member me, the way that
// transports work: alltoall sends a slice to every other member, all slices
// at once or one pair in each round; the slice to itself is copied, not
// sent. Other collectives use each buffer as a whole.
func (x *expansion) collective(c *call, members []int32, me, round int) error {
	x.reset()
	n := len(members)
	onNode := true // the whole communicator
	for _, m := range members {
		onNode = onNode && x.shared(m)
	}
	for i := range c.recs {
		r := &c.recs[i]
		var err error
		switch r.Op {
		case trace.OpBarrier:
		case trace.OpAlltoall:
			slice := r.Bytes / uint64(n)
			for peer := 0; peer < n && err == nil; peer++ {
				if peer != me && (!x.paired() || peer == partner(r.Dir, me, round, n)) {
					err = x.add(r, uint64(peer)*slice, slice, x.shared(members[peer]))
				}
			}
		case trace.OpAlltoallv:
			if r.Peer != members[me] && (!x.paired() || r.Peer == members[partner(r.Dir, me, round, n)]) {
				err = x.add(r, 0, r.Bytes, x.shared(r.Peer))
			}
		default:
			err = x.add(r, 0, r.Bytes, onNode)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// partner is the member that member me of n exchanges with in a round of the
// pairwise algorithm.
func partner(d trace.Dir, me, round, n int) int {
	step := round + 1
	if d == trace.DirWrite {
		return (me - step + n) % n
	}
	return (me + step) % n
}
