package helper

import (
	"slices"

	"pinwheel/mem"
)

// deadlines have at most one deadline for each region, in order, in blocks that follow each other. What comes last and
// goes first, as in most programs that repeat themselves, takes a few steps; everything else a search for the block and
// one within it. Blocks that follow each other have more than fewDeadlines together. Blocks are used again. A region that
// is forgotten must be removed first. It belongs to one goroutine.
type deadlines struct {
	blocks []*deadlineBlock // none is empty
	free   []*deadlineBlock
	n      int
	of     placeOf
}

// placeOf tells apart the deadlines that a region may wait in.
type placeOf uint8

const (
	inGated placeOf = iota
	inReviews
	inFar
	placesOf
)

// waiting says which deadlines a region waits in, and for when.
type waiting struct {
	ns [placesOf]int64
	in [placesOf]bool
}

type deadline struct {
	ns int64
	id mem.RegionID // breaks ties, so that the first one is the same in every run
	r  *region
}

func (d *deadline) before(e *deadline) bool { return d.ns < e.ns || d.ns == e.ns && d.id < e.id }

// fewDeadlines bounds the blocks: 8 entries in 2 of them.
const fewDeadlines = 8

// deadlineBlock has the deadlines all[from:to].
type deadlineBlock struct {
	from, to int
	all      [32]deadline
}

func (b *deadlineBlock) some() []deadline { return b.all[b.from:b.to] }

// room has room at the end of the block if there is any at all.
func (b *deadlineBlock) room() bool {
	if b.to == len(b.all) && b.from > 0 {
		n := copy(b.all[:], b.some())
		clear(b.all[n:])
		b.from, b.to = 0, n
	}
	return b.to < len(b.all)
}

// put sets the deadline of a region, which it inserts or moves.
func (q *deadlines) put(r *region, ns int64) {
	q.remove(r)
	r.waiting.in[q.of], r.waiting.ns[q.of] = true, ns
	d := deadline{ns, r.id, r}
	q.n++
	i := q.find(&d)
	if i < 0 {
		if i = 0; len(q.blocks) == 0 {
			q.insertBlock(0)
		}
	}
	b := q.blocks[i]
	if !b.room() {
		b = q.makeRoom(i, &d)
	}
	place := b.to
	for ; place > b.from && d.before(&b.all[place-1]); place-- {
		b.all[place] = b.all[place-1]
	}
	b.all[place] = d
	b.to++
}

// makeRoom makes room for an entry that belongs into a block that is full, and returns the block to put it into.
func (q *deadlines) makeRoom(i int, d *deadline) *deadlineBlock {
	b := q.blocks[i]
	half := len(b.all) / 2
	if b.all[b.to-1].before(d) {
		if i+1 < len(q.blocks) && q.blocks[i+1].room() {
			return q.blocks[i+1]
		}
		half = b.to // most come last
	}
	next := q.insertBlock(i + 1)
	next.to = copy(next.all[:], b.all[half:])
	clear(b.all[half:])
	if b.to = half; half == len(b.all) || next.all[0].before(d) {
		return next
	}
	return b
}

// remove drops a region, if it is there.
func (q *deadlines) remove(r *region) {
	if !r.waiting.in[q.of] {
		return
	}
	d := deadline{ns: r.waiting.ns[q.of], id: r.id}
	r.waiting.in[q.of], r.waiting.ns[q.of] = false, 0
	q.n--
	i := 0
	if q.blocks[0].all[q.blocks[0].from].r != r {
		i = q.find(&d)
	}
	b := q.blocks[i]
	place := b.from
	for b.all[place].r != r {
		place++
	}
	if place == b.from {
		b.from++
	} else {
		copy(b.all[place:], b.all[place+1:b.to])
		b.to--
		place = b.to
	}
	b.all[place] = deadline{} // the region may be forgotten
	if b.from == b.to {
		q.dropBlock(i)
	}
	if b.to-b.from >= fewDeadlines {
		return
	}
	for j := max(i-1, 0); j <= i && j+1 < len(q.blocks); j++ {
		if len(q.blocks[j].some())+len(q.blocks[j+1].some()) <= fewDeadlines {
			q.join(j)
			return
		}
	}
}

// join moves what the next block has to the end of a block.
func (q *deadlines) join(i int) {
	b, next := q.blocks[i], q.blocks[i+1]
	n := copy(b.all[:], b.some())
	n += copy(b.all[n:], next.some())
	clear(b.all[n:])
	clear(next.all[:])
	b.from, b.to = 0, n
	q.dropBlock(i + 1)
}

func (q *deadlines) dropBlock(i int) {
	b := q.blocks[i]
	b.from, b.to = 0, 0
	q.blocks, q.free = slices.Delete(q.blocks, i, i+1), append(q.free, b)
}

// find returns the last block that begins with an entry, or before it; -1 if there is none.
func (q *deadlines) find(d *deadline) int {
	begin, end := -1, len(q.blocks)-1
	for middle := end; begin < end; middle = (begin + end + 1) / 2 { // the last one first
		if b := q.blocks[middle]; d.before(&b.all[b.from]) {
			end = middle - 1
		} else {
			begin = middle
		}
	}
	return begin
}

func (q *deadlines) insertBlock(i int) *deadlineBlock {
	var b *deadlineBlock
	if n := len(q.free); n > 0 {
		b, q.free = q.free[n-1], q.free[:n-1]
	} else {
		b = new(deadlineBlock)
	}
	q.blocks = slices.Insert(q.blocks, i, b)
	return b
}

// get returns the deadline of a region; ok is false if it has none.
func (q *deadlines) get(r *region) (ns int64, ok bool) {
	return r.waiting.ns[q.of], r.waiting.in[q.of]
}

// first returns the entry with the earliest deadline; r is nil if there is none.
func (q *deadlines) first() (r *region, ns int64) {
	if len(q.blocks) == 0 {
		return nil, never
	}
	b := q.blocks[0]
	d := &b.all[b.from]
	return d.r, d.ns
}

func (q *deadlines) len() int { return q.n }

// appendBetween appends the regions with a deadline from one time to another, the earliest first.
func (q *deadlines) appendBetween(to []*region, fromNs, toNs int64) []*region {
	for _, b := range q.blocks[max(q.find(&deadline{ns: fromNs}), 0):] {
		for i := range b.some() {
			switch d := &b.some()[i]; {
			case d.ns > toNs:
				return to
			case d.ns >= fromNs:
				to = append(to, d.r)
			}
		}
	}
	return to
}
