package scale

import (
	"math/bits"

	"pinwheel/mem"
	"pinwheel/trace"
)

// CG divides a matrix among a grid of ranks (NPB CG/cg.f, setup_proc_info and setup_submatrix_info).
// After every product the ranks of a row add up their parts of the vector, in log2 of their number of
// steps, and each rank exchanges its part with the rank of the transposed place. Sums of numbers take
// the same steps.
type cg struct {
	base       *Base
	ranks      int
	rows, cols int
	order      int // of the matrix
	world      []int32
}

// cgOrder is na of each class.
var cgOrder = map[string]int{"S": 1400, "W": 7000, "A": 14000, "B": 75000, "C": 150000, "D": 1500000, "E": 9000000}

func newCG(b *Base, ranks int, _ *Options) (decomposition, error) {
	order, ok := cgOrder[b.class]
	switch {
	case !ok:
		return nil, unfit(b, ranks, "unknown class")
	case !isPowerOf2(ranks):
		return nil, unfit(b, ranks, "CG runs on powers of two")
	case bits.Len(uint(len(b.ranks)))%2 == 0 || len(b.ranks) < 4:
		return nil, unfit(b, ranks, "the recording must have as many rows of ranks as columns")
	}
	rows := 1 << (bits.Len(uint(ranks-1)) / 2)
	return &cg{b, ranks, rows, ranks / rows, order, world(ranks)}, nil
}

// block is the first of a part's elements, from 0, and how many it has: the first parts get one more
// if they can't be equal.
func block(order, parts, i int) (first, n int) {
	n, more := order/parts, order%parts
	if i < more {
		return i * (n + 1), n + 1
	}
	return more*(n+1) + (i-more)*n, n
}

// cgStep is one exchange of vectors: elements counted from 0.
type cgStep struct{ peer, sendFrom, sendN, recvFrom, recvN int }

// steps are the exchanges of a rank: the sums within its row, then that with the transposed place.
func (d *cg) steps(id int) (sums []cgStep, transposed cgStep) {
	_, row := block(d.order, d.rows, id/d.cols)
	_, col := block(d.order, d.cols, id%d.cols)
	if d.rows == d.cols {
		for _, p := range d.partners(id) {
			sums = append(sums, cgStep{peer: p, sendN: row, recvN: row})
		}
		return sums, cgStep{peer: id%d.rows*d.rows + id/d.rows, sendN: row, recvN: col}
	}
	// There are two columns for each row. Ranks side by side share the part of a row: each keeps half.
	if d.order%d.cols != 0 {
		_, both := block(d.order, d.cols/2, id%d.cols/2)
		_, col = block(both, 2, id%2)
	}
	from, n := block(row, 2, id%2)
	for i, p := range d.partners(id) {
		step := cgStep{p, from, n, from, n}
		if i == d.stages()-1 { // with the neighbour: it gets the other half
			step.sendFrom, step.sendN = block(row, 2, 1-id%2)
		}
		sums = append(sums, step)
	}
	peer := 2*(id/2%d.rows*d.rows+id/2/d.rows) + id%2
	return sums, cgStep{peer, from, n, 0, col}
}

func (d *cg) stages() int { return bits.Len(uint(d.cols)) - 1 }

// partners are those with whom a rank adds up numbers, in this order; vectors in the opposite one.
func (d *cg) partners(id int) (p []int) {
	col := id % d.cols
	for span := d.cols; span > 1; span /= 2 {
		p = append(p, id-col+(col+span/2)%span+col/span*span)
	}
	return p
}

func (d *cg) stream(id int, s *stream) {
	worldOnly(s, d.world)
	sums, transposed := d.steps(id)
	partners := d.partners(id)
	const element = 8 // bytes
	isSum := false    // sums and transpositions of vectors take turns
	s.write = func(c *call, s *stream) {
		computeNs := share(c.computeNs, len(d.base.ranks), d.ranks)
		if c.op() != trace.OpIrecv {
			s.copy(c, computeNs)
			return
		}
		recv, send, wait := c.records[0], s.take(), s.take()
		gaps := [2]int64{share(send.computeNs, len(d.base.ranks), d.ranks), share(wait.computeNs, len(d.base.ranks), d.ranks)}
		exchange := func(computeNs int64, st cgStep) {
			q := s.request()
			r := transfer(recv, st.peer, recv.Addr+mem.Addr(st.recvFrom*element), uint64(st.recvN*element))
			r.Req = q
			s.begin(computeNs)
			s.put(r)
			s.begin(gaps[0])
			s.put(transfer(send.records[0], st.peer, send.records[0].Addr+mem.Addr(st.sendFrom*element), uint64(st.sendN*element)))
			s.wait(wait.records[0], gaps[1], q)
		}
		const norm = 16 // bytes: the end of an outer iteration
		switch {
		case recv.Bytes <= norm:
			n := int(recv.Bytes / element)
			for i, p := range partners {
				exchange(first(i, computeNs), cgStep{peer: p, sendN: n, recvN: n})
			}
		case !isSum:
			isSum = true
			for i := range sums {
				exchange(first(i, computeNs), sums[len(sums)-1-i])
			}
		default:
			isSum = false
			exchange(computeNs, transposed)
		}
		if recv.Bytes == norm {
			s.iterated()
		}
	}
}

// first is a compute phase that lies before the first step, and not before the others.
func first(step int, computeNs int64) int64 {
	if step > 0 {
		return 0
	}
	return computeNs
}
