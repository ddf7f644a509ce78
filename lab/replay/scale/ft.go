package scale

import (
	"cmp"
	"math"

	"pinwheel/mem"
	"pinwheel/trace"
)

// FT divides a grid of complex numbers along one dimension or two (NPB FT/ft.f, setup and fft). With
// np1 = 1 each FFT has one alltoall over all ranks. Otherwise it has two: over the np2 ranks of a
// row, which have consecutive numbers, and over the np1 ranks of a column.
type ft struct {
	base     *Base
	ranks    int
	np1, np2 int
	wasFlat  bool // the recorded layout has np1 = 1
	world    []int32
	growth   ftGrowth
}

// ftGrowth is how much larger a grid is than the recorded one: in points, and in the work of transforming them, which is
// that of n log n.
type ftGrowth struct {
	points uint64
	work   float64
}

// ftGrid is nx, ny, nz of each class.
var ftGrid = map[string][3]int{
	"S": {64, 64, 64}, "W": {128, 128, 32}, "A": {256, 256, 128}, "B": {512, 256, 256},
	"C": {512, 512, 512}, "D": {2048, 1024, 1024}, "E": {4096, 2048, 2048},
}

// grown is a grid that is so many times as large, a power of two, and as near to a cube as it can be: it doubles along its
// shortest side, the last one first, as class C follows from class B.
func grown(grid [3]int, times int) [3]int {
	for ; times > 1; times /= 2 {
		shortest := 2
		for i := 1; i >= 0; i-- {
			if grid[i] < grid[shortest] {
				shortest = i
			}
		}
		grid[shortest] *= 2
	}
	return grid
}

// Numbers of communicators of derived runs, apart from recorded ones.
const (
	ftRow = 1 << 20
	ftCol = 1<<20 + 1
)

func newFT(b *Base, ranks int, o *Options) (decomposition, error) {
	class := cmp.Or(o.Class, b.class)
	grid, recorded := ftGrid[class], ftGrid[b.class]
	if o.Grown {
		if times := ranks / len(b.ranks); !isPowerOf2(times) || times*len(b.ranks) != ranks {
			return nil, unfit(b, ranks, "a problem grows by powers of two")
		}
		grid = grown(grid, ranks/len(b.ranks))
	}
	nx, ny, nz := grid[0], grid[1], grid[2]
	points, had := nx*ny*nz, recorded[0]*recorded[1]*recorded[2]
	switch {
	case points == 0 || had == 0:
		return nil, unfit(b, ranks, "unknown class "+class)
	case points < had:
		return nil, unfit(b, ranks, "class "+class+" is smaller")
	}
	f := &ft{base: b, ranks: ranks, np1: 1, np2: ranks, world: world(ranks)}
	f.growth.points = uint64(points / had)
	f.growth.work = float64(points) * math.Log2(float64(points)) / (float64(had) * math.Log2(float64(had)))
	recordedNP1 := 1
	for _, members := range b.ranks[0].comms {
		if isColumn(members) {
			recordedNP1 = len(members)
		}
	}
	f.wasFlat = recordedNP1 == 1
	switch {
	case o.Layout != [2]int{}:
		f.np1, f.np2 = o.Layout[0], o.Layout[1]
	case !f.wasFlat: // as many columns as were recorded, or as there must be
		f.np1 = max(recordedNP1, ranks/nz)
		f.np2 = ranks / f.np1
	case ranks > nz: // as ft.f has it
		f.np1, f.np2 = nz, ranks/nz
	}
	switch {
	case f.np1 < 1 || f.np2 < 1 || f.np1*f.np2 != ranks:
		return nil, unfit(b, ranks, "the layout doesn't have as many")
	case !f.wasFlat && f.np1 == 1:
		return nil, unfit(b, ranks, "its recorded layout has two dimensions, this one has one")
	case nx%f.np1 != 0 || ny%f.np1 != 0 || nz%f.np2 != 0 || ny%f.np2 != 0 || ranks%len(b.ranks) != 0:
		return nil, unfit(b, ranks, "the grid can't be divided")
	}
	return f, nil
}

func (f *ft) stream(id int, s *stream) {
	first := id / f.np2 * f.np2
	row, col := f.world[first:first+f.np2], []int32(nil)
	for r := id % f.np2; r < f.ranks; r += f.np2 {
		col = append(col, int32(r))
	}
	s.comm = func(c int32) []int32 {
		switch {
		case c == ftRow:
			return row
		case c == ftCol:
			return col
		case s.model.comms[c] != nil:
			return f.world
		}
		return nil
	}
	ffts, borrowed := 0, int64(0)
	s.write = func(c *call, s *stream) {
		computeNs := f.share(c.computeNs) - borrowed
		borrowed = 0
		if c.op() != trace.OpAlltoall {
			s.copy(c, computeNs)
			if c.op() == trace.OpReduce { // the checksum, once in an iteration
				s.iterated()
			}
			return
		}
		ffts++
		switch {
		case f.np1 == 1:
			f.transpose(s, c, computeNs, ftRow)
		case !f.wasFlat:
			comm := int32(ftRow)
			if isColumn(s.model.comms[c.records[0].Comm]) {
				comm = ftCol
			}
			f.transpose(s, c, computeNs, comm)
		case ffts <= forwardFFTs: // columns, then rows: half of what precedes lies between
			f.transpose(s, c, computeNs/2, ftCol)
			f.transposeBack(s, c, computeNs-computeNs/2, ftRow)
		default: // rows, then columns: half of what follows lies between
			if next := s.peek(); next != nil {
				borrowed = f.share(next.computeNs) / 2
			}
			f.transpose(s, c, computeNs, ftRow)
			f.transposeBack(s, c, borrowed, ftCol)
		}
	}
}

// forwardFFTs precede the main loop: one to touch all memory, and one that counts.
const forwardFFTs = 2

// isColumn tells the ranks of a column, whose numbers aren't consecutive, from those of a row.
func isColumn(members []int32) bool { return len(members) > 1 && members[1] != members[0]+1 }

// share is the share of each rank in a compute phase of the recorded run.
func (f *ft) share(ns int64) int64 {
	return share(int64(float64(ns)*f.growth.work), len(f.base.ranks), f.ranks)
}

// transpose writes an alltoall of this rank's share over a communicator. In a larger grid, its buffers lie as much farther
// apart.
func (f *ft) transpose(s *stream, c *call, computeNs int64, comm int32) {
	s.begin(computeNs)
	for _, r := range c.records {
		r.Addr *= mem.Addr(f.growth.points)
		r.Bytes = r.Bytes * f.growth.points * uint64(len(f.base.ranks)) / uint64(f.ranks)
		r.Comm, r.Peer = comm, int32(len(s.comm(comm)))
		s.put(r)
	}
}

// transposeBack writes the second alltoall of an FFT: it sends what the first has received, into
// what that one has sent.
func (f *ft) transposeBack(s *stream, c *call, computeNs int64, comm int32) {
	f.transpose(s, c, computeNs, comm)
	sent, received := &s.out[len(s.out)-2], &s.out[len(s.out)-1]
	sent.Addr, received.Addr = received.Addr, sent.Addr
	sent.Stack, received.Stack = s.secondSite(sent.Stack), s.secondSite(received.Stack)
}
