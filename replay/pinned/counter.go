// Package pinned counts over time how many bytes of memory are pinned, each
// page once however many registrations pin it.
//
// A Counter follows the pages of one rank. It tells every usage.Usage about a change
// of the total. The time is whatever clock the caller drives. Nothing here is safe for concurrent use.
package pinned

import (
	"math"
	"slices"

	"pinwheel/internal/usage"
	"pinwheel/mem"
)

// Never is the time of a change that is not going to happen.
const Never = math.MaxInt64

// Counter counts which pages of one address space are pinned, and how often.
// It cuts the address space at the ends of every range that was ever pinned, so
// its memory is bounded by the number of different ranges.
type Counter struct {
	clock  *int64           // now, in nanoseconds
	wake   func(atNs int64) // asks for Apply to be called at a time
	usages []*usage.Usage   // told of every change of the total
	cuts   []mem.Addr       // ascending; segment i is [cuts[i], cuts[i+1])
	count  []int32          // per segment; the last one is open and always 0
	total  int64            // bytes pinned now, every page once
	later  changes[pinChange]
}

// NewCounter returns a Counter without pinned pages. It reads the time, in
// nanoseconds, from clock. It calls wake, if that is not nil, whenever the next
// change moves to another time; somebody must then call Apply at that time.
func NewCounter(clock *int64, wake func(atNs int64)) *Counter {
	return &Counter{clock: clock, wake: wake}
}

// AddUsage makes the counter tell u about every later change.
func (p *Counter) AddUsage(u *usage.Usage) { p.usages = append(p.usages, u) }

type pinChange struct {
	rng   mem.Range
	delta int32
}

// Pin counts the pages of a page-aligned range as pinned from atNs on.
func (p *Counter) Pin(atNs int64, r mem.Range) { p.schedule(atNs, pinChange{r, 1}) }

// Unpin undoes one Pin of the same range at atNs.
func (p *Counter) Unpin(atNs int64, r mem.Range) { p.schedule(atNs, pinChange{r, -1}) }

func (p *Counter) schedule(atNs int64, c pinChange) {
	if atNs <= *p.clock {
		p.change(c)
		return
	}
	p.later.push(atNs, c)
	if p.wake != nil {
		p.wake(p.later.next())
	}
}

// NextNs returns the time of the next change; Never if there is none.
func (p *Counter) NextNs() int64 { return p.later.next() }

// Apply makes the changes that are due and returns the time of the next one.
func (p *Counter) Apply() (nextNs int64) {
	for p.later.next() <= *p.clock {
		p.change(p.later.pop())
	}
	return p.later.next()
}

func (p *Counter) change(c pinChange) {
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
		for _, u := range p.usages {
			u.Change(*p.clock, p.total-before)
		}
	}
}

// cut makes an address a boundary and returns the segment that begins there.
func (p *Counter) cut(a mem.Addr) int {
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
