// Package pinned counts over time how many bytes of memory are pinned, each
// page once however many registrations pin it.
//
// A Counter follows the pages of one rank. It tells every usage.Usage about a change
// of the total. The time is whatever clock the caller drives. Nothing here is safe for concurrent use.
package pinned

import (
	"math"

	"github.com/google/btree"

	"pinwheel/internal/usage"
	"pinwheel/mem"
)

// Never is the time of a change that is not going to happen.
const Never = math.MaxInt64

// Counter counts which pages of one address space are pinned, and how often.
type Counter struct {
	clock  *int64           // now, in nanoseconds
	wake   func(atNs int64) // asks for Apply to be called at a time
	usages []*usage.Usage   // told of every change of the total
	pages  mem.Counts
	later  *btree.BTreeG[pinChange]
	seq    uint64 // of the last change that was scheduled
}

// pinChange is a change of the count of a range at a time. Changes of equal time are made in
// the order in which they came, so that a simulation is deterministic.
type pinChange struct {
	atNs int64
	seq  uint64
	rng  mem.Range
	pin  bool
}

func (c pinChange) before(o pinChange) bool {
	return c.atNs < o.atNs || c.atNs == o.atNs && c.seq < o.seq
}

// NewCounter returns a Counter without pinned pages. It reads the time, in
// nanoseconds, from clock. It calls wake, if that is not nil, whenever the next
// change moves to another time; somebody must then call Apply at that time.
func NewCounter(clock *int64, wake func(atNs int64)) *Counter {
	return &Counter{clock: clock, wake: wake, later: btree.NewG(16, pinChange.before)}
}

// AddUsage makes the counter tell u about every later change.
func (p *Counter) AddUsage(u *usage.Usage) { p.usages = append(p.usages, u) }

// Pin counts the pages of a page-aligned range as pinned from atNs on.
func (p *Counter) Pin(atNs int64, r mem.Range) { p.schedule(pinChange{atNs: atNs, rng: r, pin: true}) }

// Unpin undoes one Pin of the same range at atNs.
func (p *Counter) Unpin(atNs int64, r mem.Range) { p.schedule(pinChange{atNs: atNs, rng: r}) }

func (p *Counter) schedule(c pinChange) {
	if c.atNs <= *p.clock {
		p.change(c)
		return
	}
	p.seq++
	c.seq = p.seq
	p.later.ReplaceOrInsert(c)
	if p.wake != nil {
		p.wake(p.NextNs())
	}
}

// NextNs returns the time of the next change; Never if there is none.
func (p *Counter) NextNs() int64 {
	if c, ok := p.later.Min(); ok {
		return c.atNs
	}
	return Never
}

// Apply makes the changes that are due and returns the time of the next one.
func (p *Counter) Apply() (nextNs int64) {
	for p.NextNs() <= *p.clock {
		c, _ := p.later.DeleteMin()
		p.change(c)
	}
	return p.NextNs()
}

func (p *Counter) change(c pinChange) {
	before := p.pages.Bytes()
	if c.pin {
		p.pages.Add(c.rng)
	} else {
		p.pages.Remove(c.rng)
	}
	if delta := int64(p.pages.Bytes() - before); delta != 0 {
		for _, u := range p.usages {
			u.Change(*p.clock, delta)
		}
	}
}
