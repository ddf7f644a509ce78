package scale

import (
	"math"

	"pinwheel/mem"
	"pinwheel/trace"
)

// SP cuts a cube of points into cells, as many in each direction as the square root of the number of
// ranks, and gives each rank one cell of every layer, so that in each sweep all ranks are busy (NPB
// SP/make_set.f). A time step copies the faces of all cells (copy_faces.f), and then sweeps through
// the cells of the rank forward and back in each of three directions, handing on what the next cell
// needs (x_solve.f, y_solve.f, z_solve.f).
type sp struct {
	base   *Base
	ranks  int
	cells  int // of a rank
	points int // in each direction
	world  []int32
}

// spPoints is problem_size of each class.
var spPoints = map[string]int{"S": 12, "W": 36, "A": 64, "B": 102, "C": 162, "D": 408, "E": 1020}

const (
	wordBytes    = 8  // a double
	spVariables  = 5  // at every point
	spGhosts     = 2  // layers of points that neighbours copy
	spForward    = 22 // words that a sweep hands on for each line of points: its way there
	spBackward   = 10 // and back
	spNeighbours = 6
	smallestCell = 3
)

func newSP(b *Base, ranks int, _ *Options) (decomposition, error) {
	points, ok := spPoints[b.class]
	cells := int(math.Round(math.Sqrt(float64(ranks))))
	switch {
	case !ok:
		return nil, unfit(b, ranks, "unknown class")
	case cells*cells != ranks:
		return nil, unfit(b, ranks, "SP runs on square numbers of ranks")
	case points/cells < smallestCell:
		return nil, unfit(b, ranks, "cells would be smaller than three points")
	case len(b.ranks) != 4:
		return nil, unfit(b, ranks, "the rule needs a recording of four ranks")
	}
	return &sp{b, ranks, cells, points, world(ranks)}, nil
}

// spRank is where a rank is.
type spRank struct {
	*sp
	coord                  [][3]int // of its cells, from 0
	cellAt                 [3][]int // the cell in each layer
	successor, predecessor [3]int
}

func (d *sp) place(id int) *spRank {
	p, i, j := d.cells, id%d.cells, id/d.cells
	r := &spRank{sp: d}
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
func (d *sp) size(layer int) int {
	_, n := block(d.points, d.cells, layer)
	return n
}

// inner is the same without the boundary of the cube.
func (d *sp) inner(layer int) int {
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
func (r *spRank) faces(dir int, up bool) uint64 {
	n := 0
	for _, c := range r.coord {
		if up && c[dir] == r.cells-1 || !up && c[dir] == 0 {
			continue // the boundary of the cube
		}
		n += r.size(c[(dir+1)%3]) * r.size(c[(dir+2)%3])
	}
	return uint64(n * spGhosts * spVariables * wordBytes)
}

// handed is how many bytes a sweep hands on from or to a layer.
func (r *spRank) handed(dir, layer, words int) uint64 {
	c := r.coord[r.cellAt[dir][layer]]
	return uint64(r.inner(c[(dir+1)%3]) * r.inner(c[(dir+2)%3]) * words * wordBytes)
}

func (d *sp) stream(id int, s *stream) {
	worldOnly(s, d.world)
	r := d.place(id)
	w := &spWriter{spRank: r, s: s}
	s.write = w.write
}

// spWriter writes the calls of a rank.
type spWriter struct {
	*spRank
	s   *stream
	in  mem.Addr // buffer that is received into; the sweeps use its begin
	out mem.Addr
	dir int // of the next sweep
}

func (w *spWriter) write(c *call, s *stream) {
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
func (w *spWriter) share(ns int64) int64 { return share(ns, len(w.base.ranks), w.ranks) }

func (w *spWriter) cell(ns int64) int64 {
	recorded := math.Sqrt(float64(len(w.base.ranks)))
	k := recorded / float64(w.cells)
	return int64(float64(ns) * k * k * k)
}

// copyFaces writes the exchange of faces: six receives, six sends, a wait for all. In the buffers the
// faces lie in the order of compute_buffer_size (define.f): west, east, south, north, bottom, top.
func (w *spWriter) copyFaces(first *call) {
	calls := []*call{first}
	for len(calls) < 2*spNeighbours {
		calls = append(calls, w.s.take())
	}
	wait := w.s.take()
	w.in, w.out = lowest(calls[:spNeighbours]), lowest(calls[spNeighbours:])
	var requests []uint32
	for i, c := range calls {
		dir, up := i%spNeighbours/2, i%2 == 0 // both loops go up first in each direction
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

// sweep writes one direction. The recorded ranks have two cells: the first hands on (send), the second
// takes over (recv, wait), goes back (sendBack), and the first takes over again (recvBack, waitBack).
// What a cell in between computes is put together from those: before it hands on forward, half of what
// the last cell computes between its way there and its way back.
func (w *spWriter) sweep(send *call) {
	recv, wait := w.s.take(), w.s.take()
	sendBack, recvBack, waitBack := w.s.take(), w.s.take(), w.s.take()
	last := w.cells - 1
	beforeNs := w.cell(send.computeNs)
	if w.dir == 0 { // the right-hand sides of all cells come before the first sweep
		typicalNs := sendBack.computeNs + wait.computeNs
		beforeNs = w.share(max(0, send.computeNs-typicalNs)) + w.cell(min(typicalNs, send.computeNs))
	}
	sent := w.post(send, beforeNs, w.successor[w.dir], w.handed(w.dir, 0, spForward))
	for layer := 1; layer <= last; layer++ {
		received := w.post(recv, w.cell(recv.computeNs), w.predecessor[w.dir], w.handed(w.dir, layer, spForward))
		w.s.wait(wait.records[0], w.cell(wait.computeNs), received, sent)
		if layer < last {
			sent = w.post(send, w.cell(sendBack.computeNs/2), w.successor[w.dir], w.handed(w.dir, layer, spForward))
		}
	}
	sent = w.post(sendBack, w.cell(sendBack.computeNs), w.predecessor[w.dir], w.handed(w.dir, last, spBackward))
	for layer := last - 1; layer >= 0; layer-- {
		received := w.post(recvBack, w.cell(recvBack.computeNs), w.successor[w.dir], w.handed(w.dir, layer, spBackward))
		w.s.wait(waitBack.records[0], w.cell(waitBack.computeNs), received, sent)
		if layer > 0 {
			sent = w.post(sendBack, w.cell(sendBack.computeNs/2), w.predecessor[w.dir], w.handed(w.dir, layer, spBackward))
		}
	}
}

// post writes a send or receive at the begin of its buffer and returns its request.
func (w *spWriter) post(like *call, computeNs int64, peer int, bytes uint64) uint32 {
	at := w.out
	if like.op() == trace.OpIrecv {
		at = w.in
	}
	r := transfer(like.records[0], peer, at, bytes)
	r.Req = w.s.request()
	w.s.begin(computeNs)
	w.s.put(r)
	return r.Req
}
