//go:build cgo

package main

import (
	"runtime"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/schedule"
)

// Tests can't name C's types, but can infer them.

func allocate[T any](p **T) { *p = new(T) }

func set[T ~uint32 | ~uint64](p *T, v uint64) { *p = T(v) }

const slotFree, slotTaken = 0, 1 // PW_TURN_FREE, PW_TURN_TAKEN

func slotReady(position uint64) uint64 { return 2*position + 2 } // PW_TURN_READY

// queued is a source over a ring, and its producer: ring.h in Go. A tick is a nanosecond.
type queued struct {
	*source
	head, lost uint64
}

func newQueued() *queued {
	var ns atomic.Int64
	ticks := clock.NewTicks(func() uint64 { return uint64(ns.Add(1)) }, ns.Load)
	q := &queued{source: &source{clock: ticks}}
	allocate(&q.ring)
	return q
}

// push adds an event of the region, or counts it as lost.
func (q *queued) push(region uint64) {
	slot := &q.ring.slots[q.head%uint64(len(q.ring.slots))]
	turn := at64(&slot.turn)
	if now := turn.Load(); now != slotFree {
		if now != slotTaken && turn.CompareAndSwap(now, slotFree) {
			q.lost++
		} else if turn.Load() != slotFree {
			q.lost++
			return
		}
	}
	set(&slot.item.region, region)
	set(&slot.item.start, 0x1000)
	set(&slot.item.end, 0x1000+region%(1<<domainShift))
	if slot.item.site == nil {
		allocate(&slot.item.site)
		set(&slot.item.site.frames[1], 77)
	}
	set(&slot.item.pages, 9)
	turn.Store(slotReady(q.head))
	q.head++
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

func TestOverrunLosesTheOldestAndNothingElse(t *testing.T) {
	q := newQueued()
	slots := uint64(len(q.ring.slots))
	var e schedule.Event
	q.push(1)
	if !q.Pop(&e) {
		t.Fatal("no event")
	}
	last := 5*slots/2 + 7
	for region := uint64(2); region <= last; region++ {
		q.push(region)
	}
	if want := last - 1 - slots; q.lost != want {
		t.Errorf("%d lost, want %d", q.lost, want)
	}
	for region := last - slots + 1; region <= last; region++ {
		if !q.Pop(&e) || e.Region != mem.RegionID(region) {
			t.Fatalf("region %d, want %d", e.Region, region)
		}
	}
	if q.Pop(&e) {
		t.Errorf("region %d again", e.Region)
	}
}

func TestProducerAndConsumerTogetherAccountForEveryEvent(t *testing.T) {
	q := newQueued()
	const events = 200_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for region := uint64(1); region <= events; region++ {
			q.push(region)
			if region%50_000 == 0 {
				runtime.Gosched()
			}
		}
	}()
	var e schedule.Event
	var popped uint64
	var before mem.RegionID
	look := func() {
		for q.Pop(&e) {
			popped++
			if e.Region <= before {
				t.Fatalf("region %d after %d", e.Region, before)
			}
			before = e.Region
		}
	}
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		look()
	}
	if popped+q.lost != events {
		t.Errorf("%d arrived, %d lost, of %d", popped, q.lost, events)
	}
}
