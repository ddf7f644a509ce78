//go:build cgo

package main

import (
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/schedule"
)

// Tests can't name C's types, but can infer them.

func allocate[T any](p **T) { *p = new(T) }

func set[T ~uint32 | ~uint64](p *T, v uint64) { *p = T(v) }

func ringOf[T any](func(*T, *clock.Ticks) *source) *T { return new(T) }

// queued is a source with its producer, whose ring never overruns. lab/bench/ctable tests that of C. A tick is a nanosecond.
type queued struct {
	*source
	push func(region uint64)
}

func newQueued() *queued {
	var ns atomic.Int64
	var head uint64
	ring := ringOf(newSource)
	return &queued{newSource(ring, clock.NewTicks(func() uint64 { return uint64(ns.Add(1)) }, ns.Load)), func(region uint64) {
		slot := &ring.slots[head]
		set(&slot.item.region, region)
		set(&slot.item.start, 0x1000)
		set(&slot.item.end, 0x1000+region%(1<<domainShift))
		allocate(&slot.item.site)
		set(&slot.item.site.frames[1], 77)
		set(&slot.item.pages, 9)
		at64(&slot.turn).Store(2*head + 2) // PW_TURN_READY
		head++
	}}
}

func TestEventsArriveInOrderAndWhole(t *testing.T) {
	q := newQueued()
	var e schedule.Event
	if q.Pop(&e) {
		t.Fatal("an event from an empty ring")
	}
	for region := uint64(1); region <= 3; region++ {
		q.push(region)
	}
	for region := uint64(1); region <= 3; region++ {
		if !q.Pop(&e) {
			t.Fatalf("no event %d", region)
		}
		if e.Region != mem.RegionID(region) || e.Range.Start != 0x1000 || e.Range.Len() != region ||
			e.Frames[1] != 77 || e.Pages != 9 {
			t.Errorf("event %d: %+v", region, e)
		}
	}
	if q.Pop(&e) {
		t.Error("a fourth event")
	}
}
