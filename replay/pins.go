package replay

import (
	"slices"

	"pinwheel/mem"
)

// pins counts which pages of one rank are pinned, and how often, over virtual
// time. The address space is cut at the ends of every range ever pinned, so
// that memory is bounded by the regions of the trace.
type pins struct {
	cuts  []mem.Addr // ascending; segment i is [cuts[i], cuts[i+1])
	count []int32    // per segment; the last one is open and always 0
	total int64      // bytes pinned now, every page once

	pending []pinChange // heap of changes that are still to come
	seq     uint64
	wake    func(atNs int64) // asks for apply to be called at a time
	sinks   []*usage         // told of every change
}

type pinChange struct {
	at    int64
	seq   uint64
	rng   mem.Range
	delta int32
}

// at schedules a change: delta 1 pins, -1 unpins. Times may not lie in the past.
func (p *pins) at(now, at int64, r mem.Range, delta int32) {
	if at <= now && len(p.pending) == 0 {
		p.change(now, r, delta)
		return
	}
	p.seq++
	p.pending = append(p.pending, pinChange{at, p.seq, r, delta})
	for i := len(p.pending) - 1; i > 0; { // sift up
		parent := (i - 1) / 2
		if !p.pending[i].before(&p.pending[parent]) {
			break
		}
		p.pending[i], p.pending[parent] = p.pending[parent], p.pending[i]
		i = parent
	}
	p.wake(p.pending[0].at)
}

func (c *pinChange) before(o *pinChange) bool { return c.at < o.at || c.at == o.at && c.seq < o.seq }

// apply carries out what is due at now and returns when the next is.
func (p *pins) apply(now int64) (next int64) {
	for len(p.pending) > 0 && p.pending[0].at <= now {
		c := p.pending[0]
		n := len(p.pending) - 1
		p.pending[0] = p.pending[n]
		p.pending = p.pending[:n]
		for i := 0; ; { // sift down
			k := 2*i + 1
			if k >= n {
				break
			}
			if k+1 < n && p.pending[k+1].before(&p.pending[k]) {
				k++
			}
			if !p.pending[k].before(&p.pending[i]) {
				break
			}
			p.pending[i], p.pending[k] = p.pending[k], p.pending[i]
			i = k
		}
		p.change(now, c.rng, c.delta)
	}
	if len(p.pending) == 0 {
		return never
	}
	return p.pending[0].at
}

// change pins or unpins a page-aligned range now.
func (p *pins) change(now int64, r mem.Range, delta int32) {
	i := p.cut(r.Start)
	p.cut(r.End)
	before := p.total
	for ; p.cuts[i] < r.End; i++ {
		was := p.count[i]
		p.count[i] += delta
		switch {
		case was == 0 && delta > 0:
			p.total += int64(p.cuts[i+1] - p.cuts[i])
		case was > 0 && p.count[i] == 0:
			p.total -= int64(p.cuts[i+1] - p.cuts[i])
		}
	}
	if p.total != before {
		for _, u := range p.sinks {
			u.change(now, p.total-before)
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
