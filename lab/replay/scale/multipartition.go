package scale

import (
	"math"
	"slices"

	"pinwheel/mem"
	"pinwheel/trace"
)

// multipartition is how BT and SP divide a cube of points: into cells, as many in each direction as the square root of
// the number of ranks, of which each rank gets one of every layer, so that in each sweep all ranks are busy (NPB
// BT and SP, make_set.f). A time step copies the faces of all cells (copy_faces.f), and then sweeps through
// the cells of the rank forward and back in each of three directions, handing on what the next cell
// needs (x_solve.f, y_solve.f, z_solve.f).
type multipartition struct {
	*solver
	base   *Base
	ranks  int
	cells  int     // of a rank
	points int     // in each direction
	growth float64 // of all points together
	world  []int32
}

// solver is in what BT and SP differ: what a sweep hands on.
type solver struct {
	name     string
	points   map[string]int // problem_size of each class
	forward  int            // words for each line of points, on the way there
	backward int            // and back
	// solving is how much of what the last cell computes, between its way there and its way back, is of the way there.
	solving float64
	// blocks says that a sweep hands on as many lines as the largest cell has sides, with a tag for each line of cells, from
	// where faces are received to where they are sent from, and waits for what it sends and receives one by one.
	blocks bool
}

var (
	// SP solves five equations for each line, which take about as long there as back.
	sp = solver{"SP", map[string]int{"S": 12, "W": 36, "A": 64, "B": 102, "C": 162, "D": 408, "E": 1020}, 22, 10, 0.5, false}
	// BT eliminates blocks of 5 x 5, and multiplies each with a vector on its way back, which is a tenth of that.
	bt = solver{"BT", map[string]int{"S": 12, "W": 24, "A": 64, "B": 102, "C": 162, "D": 408, "E": 1020}, 30, 5, 0.9, true}
)

const (
	wordBytes    = 8 // a double
	variables    = 5 // at every point
	ghosts       = 2 // layers of points that neighbours copy
	neighbours   = 6
	smallestCell = 3
	tagStep      = 1000 // between the tags of directions
)

// multipartitioned is the rule of a solver.
func multipartitioned(like *solver) rule {
	return func(b *Base, ranks int, o *Options) (decomposition, error) {
		recorded, ok := like.points[b.class]
		points, cells := recorded, int(math.Round(math.Sqrt(float64(ranks))))
		if o.Grown {
			points = int(math.Round(float64(recorded) * math.Cbrt(float64(ranks)/float64(len(b.ranks)))))
		}
		switch {
		case !ok:
			return nil, unfit(b, ranks, "unknown class")
		case cells*cells != ranks:
			return nil, unfit(b, ranks, like.name+" runs on square numbers of ranks")
		case points/cells < smallestCell:
			return nil, unfit(b, ranks, "cells would be smaller than three points")
		case len(b.ranks) != 4:
			return nil, unfit(b, ranks, "the rule needs a recording of four ranks")
		}
		return &multipartition{like, b, ranks, cells, points, math.Pow(float64(points)/float64(recorded), 3), world(ranks)}, nil
	}
}

// place is where a rank is.
type place struct {
	*multipartition
	coord                  [][3]int // of its cells, from 0
	cellAt                 [3][]int // the cell in each layer
	successor, predecessor [3]int
}

func (d *multipartition) place(id int) *place {
	p, i, j := d.cells, id%d.cells, id/d.cells
	r := &place{multipartition: d}
	for c := range p {
		r.coord = append(r.coord, [3]int{(i + c) % p, (j - c + p) % p, c})
	}
	for dir := range 3 {
		r.cellAt[dir] = make([]int, p)
		for c := range p {
			r.cellAt[dir][r.coord[c][dir]] = c
		}
	}
	at := func(i, j int) int { return (i+p)%p + (j+p)%p*p }
	r.predecessor = [3]int{at(i-1, j), at(i, j-1), at(i+1, j-1)}
	r.successor = [3]int{at(i+1, j), at(i, j+1), at(i-1, j+1)}
	return r
}

// size is the number of points of a layer of cells.
func (d *multipartition) size(layer int) int {
	_, n := block(d.points, d.cells, layer)
	return n
}

// inner is the same without the boundary of the cube.
func (d *multipartition) inner(layer int) int {
	n := d.size(layer)
	if layer == 0 {
		n--
	}
	if layer == d.cells-1 {
		n--
	}
	return n
}

// faces is how many bytes a rank sends to its successor (up) or predecessor in a direction.
func (r *place) faces(dir int, up bool) uint64 {
	n := 0
	for _, c := range r.coord {
		if up && c[dir] == r.cells-1 || !up && c[dir] == 0 {
			continue // the boundary of the cube
		}
		n += r.size(c[(dir+1)%3]) * r.size(c[(dir+2)%3])
	}
	return uint64(n * ghosts * variables * wordBytes)
}

// allFaces is how many bytes a rank sends to all neighbours.
func (r *place) allFaces() (bytes uint64) {
	for dir := range 3 {
		bytes += r.faces(dir, false) + r.faces(dir, true)
	}
	return bytes
}

// handed is how many bytes a sweep hands on from or to a layer.
func (r *place) handed(dir, layer, words int) uint64 {
	if r.blocks {
		side := r.points/r.cells + 1 // MAX_CELL_DIM of every cell
		return uint64(side * side * words * wordBytes)
	}
	c := r.coord[r.cellAt[dir][layer]]
	return uint64(r.inner(c[(dir+1)%3]) * r.inner(c[(dir+2)%3]) * words * wordBytes)
}

// tag is that of what a sweep hands on from or to a layer.
func (r *place) tag(recorded int32, dir, layer int) int32 {
	if !r.blocks {
		return recorded
	}
	c := r.coord[r.cellAt[dir][layer]]
	lines := slices.Delete(slices.Clone(c[:]), dir, dir+1)
	return recorded/tagStep*tagStep + int32(lines[0]+lines[1]*r.cells)
}

func (d *multipartition) stream(id int, s *stream) {
	worldOnly(s, d.world)
	r := d.place(id)
	w := &sweeper{place: r, s: s}
	s.write = w.write
}

// sweeper writes the calls of a rank.
type sweeper struct {
	*place
	s   *stream
	in  mem.Addr // buffer that is received into; the sweeps use its begin
	out mem.Addr
	dir int // of the next sweep
}

func (w *sweeper) write(c *call, s *stream) {
	switch r := &c.records[0]; {
	case c.op() == trace.OpIrecv:
		w.copyFaces(c)
		w.dir = 0
	case c.op() == trace.OpIsend && r.Req != 0:
		w.sweep(c)
		if w.dir++; w.dir == 3 {
			s.iterated()
		}
	default:
		s.copy(c, w.share(c.computeNs))
	}
}

// share is a compute phase over all cells; cell is one over a single cell.
func (w *sweeper) share(ns int64) int64 {
	return int64(float64(share(ns, len(w.base.ranks), w.ranks)) * w.growth)
}

func (w *sweeper) cell(ns int64) int64 {
	recorded := math.Sqrt(float64(len(w.base.ranks)))
	k := recorded / float64(w.cells)
	return int64(float64(ns) * k * k * k * w.growth)
}

// copyFaces writes the exchange of faces: six receives, six sends, a wait for all. In the buffers the
// faces lie in the order of compute_buffer_size (define.f): west, east, south, north, bottom, top.
func (w *sweeper) copyFaces(first *call) {
	calls := []*call{first}
	for len(calls) < 2*neighbours {
		calls = append(calls, w.s.take())
	}
	wait := w.s.take()
	w.in, w.out = w.apart(lowest(calls[:neighbours]), lowest(calls[neighbours:]))
	var requests []uint32
	for i, c := range calls {
		dir, up := i%neighbours/2, i%2 == 0 // both loops go up first in each direction
		at, peer := w.in, w.predecessor[dir]
		if c.op() == trace.OpIsend {
			at = w.out
		}
		if up {
			peer = w.successor[dir]
		}
		for lower := range dir {
			at += mem.Addr(w.faces(lower, false) + w.faces(lower, true))
		}
		if up {
			at += mem.Addr(w.faces(dir, false))
		}
		r := transfer(c.records[0], peer, at, w.faces(dir, up))
		r.Req = w.s.request()
		requests = append(requests, r.Req)
		w.s.begin(w.share(c.computeNs))
		w.s.put(r)
	}
	w.s.wait(wait.records[0], w.share(wait.computeNs), requests...)
}

func lowest(calls []*call) mem.Addr {
	at := calls[0].records[0].Addr
	for _, c := range calls {
		at = min(at, c.records[0].Addr)
	}
	return at
}

// apart moves two buffers apart, by whole pages, if what they have would overlap in a larger problem.
func (r *place) apart(in, out mem.Addr) (mem.Addr, mem.Addr) {
	low, high := min(in, out), max(in, out)
	if missing := int64(r.allFaces()) - int64(high-low); missing > 0 {
		high += mem.Addr((uint64(missing) + mem.PageSize - 1) / mem.PageSize * mem.PageSize)
	}
	if in < out {
		return low, high
	}
	return high, low
}

// sweep writes one direction. The recorded ranks have two cells: the first hands on (send), the second
// takes over (recv, waits), goes back (sendBack), and the first takes over again (recvBack, waitsBack).
// What a cell in between computes is put together from those: a part of what the last cell computes between its way
// there and its way back.
func (w *sweeper) sweep(send *call) {
	recv, waits := w.s.take(), w.takeWaits()
	sendBack, recvBack, waitsBack := w.s.take(), w.s.take(), w.takeWaits()
	last := w.cells - 1
	beforeNs := w.cell(send.computeNs)
	if w.dir == 0 { // the right-hand sides of all cells come before the first sweep
		typicalNs := sendBack.computeNs + waits[0].computeNs
		beforeNs = w.share(max(0, send.computeNs-typicalNs)) + w.cell(min(typicalNs, send.computeNs))
	}
	part := func(of float64) int64 { return w.cell(int64(float64(sendBack.computeNs) * of)) }
	sent := w.post(send, beforeNs, w.successor[w.dir], 0, w.forward)
	for layer := 1; layer <= last; layer++ {
		received := w.post(recv, w.cell(recv.computeNs), w.predecessor[w.dir], layer, w.forward)
		w.wait(waits, received, sent)
		if layer < last {
			sent = w.post(send, part(w.solving), w.successor[w.dir], layer, w.forward)
		}
	}
	sent = w.post(sendBack, w.cell(sendBack.computeNs), w.predecessor[w.dir], last, w.backward)
	for layer := last - 1; layer >= 0; layer-- {
		received := w.post(recvBack, w.cell(recvBack.computeNs), w.successor[w.dir], layer, w.backward)
		w.wait(waitsBack, received, sent)
		if layer > 0 {
			sent = w.post(sendBack, part(1-w.solving), w.predecessor[w.dir], layer, w.backward)
		}
	}
}

// post writes a send or receive of a layer at the begin of its buffer and returns its request.
func (w *sweeper) post(like *call, computeNs int64, peer, layer, words int) uint32 {
	at := w.out
	if like.op() == trace.OpIrecv != w.blocks {
		at = w.in
	}
	r := transfer(like.records[0], peer, at, w.handed(w.dir, layer, words))
	r.Tag, r.Req = w.tag(r.Tag, w.dir, layer), w.s.request()
	w.s.begin(computeNs)
	w.s.put(r)
	return r.Req
}

// takeWaits takes the calls that end a send and a receive.
func (w *sweeper) takeWaits() []*call {
	if w.blocks {
		return []*call{w.s.take(), w.s.take()}
	}
	return []*call{w.s.take()}
}

func (w *sweeper) wait(calls []*call, received, sent uint32) {
	if len(calls) == 1 {
		w.s.wait(calls[0].records[0], w.cell(calls[0].computeNs), received, sent)
		return
	}
	for i, request := range []uint32{sent, received} {
		w.s.wait(calls[i].records[0], w.cell(calls[i].computeNs), request)
	}
}
