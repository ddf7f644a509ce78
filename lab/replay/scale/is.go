package scale

import "pinwheel/trace"

// IS sorts keys that are divided evenly (NPB IS/is.c, rank and full_verify). Every iteration sums up
// the bucket sizes, tells all ranks how many keys they get, and exchanges the keys. Buckets are
// dealt out so that all ranks get about as many keys: the recorded exchange is even to 1 %. The derived
// one is even, which makes it an alltoall.
type is struct {
	base  *Base
	ranks int
	world []int32
}

func newIS(b *Base, ranks int, _ *Options) (decomposition, error) {
	if !isPowerOf2(ranks) {
		return nil, unfit(b, ranks, "IS runs on powers of two")
	}
	return &is{b, ranks, world(ranks)}, nil
}

func (d *is) stream(id int, s *stream) {
	// In the last step, each rank sends its last key to the next one.
	switch recorded := len(d.base.ranks); {
	case id == d.ranks-1:
		s.model = &d.base.ranks[recorded-1]
	case id > 0 && recorded > 2:
		s.model = &d.base.ranks[1+(id-1)%(recorded-2)]
	}
	worldOnly(s, d.world)
	s.write = func(c *call, s *stream) {
		computeNs := share(c.computeNs, len(d.base.ranks), d.ranks)
		switch r := c.records[0]; {
		case d.ranks == len(d.base.ranks):
			s.copy(c, c.computeNs)
		case c.op() == trace.OpAlltoall: // how many keys, four bytes for each rank
			s.begin(computeNs)
			for _, r := range c.records {
				r.Bytes = uint64(4 * d.ranks)
				s.put(r)
			}
		case c.op() == trace.OpAlltoallv:
			d.exchange(s, c, computeNs)
		case c.op() == trace.OpSend:
			s.begin(computeNs)
			s.put(transfer(r, id+1, r.Addr, r.Bytes))
		case c.op() == trace.OpIrecv:
			s.begin(computeNs)
			s.put(transfer(r, id-1, r.Addr, r.Bytes))
		default:
			s.copy(c, computeNs)
		}
		if c.op() == trace.OpAlltoallv {
			s.iterated()
		}
	}
}

// exchange writes the exchange of keys.
func (d *is) exchange(s *stream, c *call, computeNs int64) {
	var sum [2]uint64
	for i := range c.records {
		sum[c.records[i].Dir-trace.DirRead] += c.records[i].Bytes
	}
	s.begin(computeNs)
	for _, r := range c.records[:2] { // the first slices, one of each direction
		const keyBytes = 4
		slice := sum[r.Dir-trace.DirRead] * uint64(len(d.base.ranks)) / uint64(d.ranks*d.ranks) / keyBytes * keyBytes
		r.Op, r.Bytes, r.Peer = trace.OpAlltoall, slice*uint64(d.ranks), int32(d.ranks)
		s.put(r)
	}
}
