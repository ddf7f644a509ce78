package replay

import (
	"slices"

	"pinwheel/mem"
)

// pins counts which pages of one rank are pinned, and how often, over virtual
// time. The address space is cut at the ends of every range ever pinned, so
// memory is bounded by the regions of the trace.
type pins struct {
	clock *int64           // of the simulation
	wake  func(atNs int64) // asks for apply to be called at a time
	sinks []*usage         // told of every change of the total
	cuts  []mem.Addr       // ascending; segment i is [cuts[i], cuts[i+1])
	count []int32          // per segment; the last one is open and always 0
	total int64            // bytes pinned now, every page once
	later eventHeap[pinChange]
}

type pinChange struct {
	rng   mem.Range
	delta int32
}

// pin counts the pages of a page-aligned range as pinned from atNs on.
func (p *pins) pin(atNs int64, r mem.Range) { p.schedule(atNs, pinChange{r, 1}) }

// unpin undoes one pin at atNs.
func (p *pins) unpin(atNs int64, r mem.Range) { p.schedule(atNs, pinChange{r, -1}) }

func (p *pins) schedule(atNs int64, c pinChange) {
	if atNs <= *p.clock {
		p.change(c)
		return
	}
	p.later.push(atNs, c)
	p.wake(p.later.next())
}

// apply carries out what is due and returns when the next change is.
func (p *pins) apply() (next int64) {
	for p.later.next() <= *p.clock {
		p.change(p.later.pop())
	}
	return p.later.next()
}

func (p *pins) change(c pinChange) {
	i := p.cut(c.rng.Start)
	p.cut(c.rng.End)
	before := p.total
	for ; p.cuts[i] < c.rng.End; i++ {
		was := p.count[i]
		p.count[i] += c.delta
		switch {
		case was == 0:
			p.total += int64(p.cuts[i+1] - p.cuts[i])
		case p.count[i] == 0:
			p.total -= int64(p.cuts[i+1] - p.cuts[i])
		}
	}
	if p.total != before {
		for _, u := range p.sinks {
			u.change(*p.clock, p.total-before)
		}
	}
}

// cut makes an address a boundary and returns the segment that begins there.
func (p *pins) cut(a mem.Addr) int {
	i, found := slices.BinarySearch(p.cuts, a)
	if found {
		return i
	}
	var c int32
	if i > 0 {
		c = p.count[i-1]
	}
	p.cuts = slices.Insert(p.cuts, i, a)
	p.count = slices.Insert(p.count, i, c)
	return i
}
