package ctable

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"pinwheel/internal/testwait"
	"pinwheel/queue"
)

// overrun returns how many events were overrun so far.
func (r ring) overrun() uint64 { return atomic.LoadUint64((*uint64)(&r.c.lost)) }

func TestGoTakesWholeEventsOfCInOrder(t *testing.T) {
	testwait.Bound(t)
	r := newRing()
	defer r.free()
	if unsafe.Sizeof(queue.Slot[event]{}) != unsafe.Sizeof(r.c.slots[0]) {
		t.Fatalf("a slot has %d bytes in Go, %d in C", unsafe.Sizeof(queue.Slot[event]{}), unsafe.Sizeof(r.c.slots[0]))
	}
	var e event
	if r.Pop(&e) {
		t.Fatal("an event of an empty ring")
	}
	next := uint64(1)
	for _, pushed := range []uint64{3, uint64(len(r.c.slots)), 5 * uint64(len(r.c.slots)) / 2} { // the last overruns
		before, kept := r.overrun(), min(pushed, uint64(len(r.c.slots)))
		for range pushed {
			r.push(next)
			next++
		}
		if lost := r.overrun() - before; lost != pushed-kept {
			t.Errorf("%d of %d lost", lost, pushed)
		}
		for want := next - kept; want < next; want++ {
			if !r.Pop(&e) || uint64(e.region) != want || uint64(e.start) != ^want {
				t.Fatalf("event %d, %#x; want %d", e.region, e.start, want)
			}
		}
		if r.Pop(&e) {
			t.Fatalf("event %d again", e.region)
		}
	}
}

// TestRingOfCAccountsForEveryEvent has the consumer take what is being overrun.
func TestRingOfCAccountsForEveryEvent(t *testing.T) {
	testwait.Bound(t)
	r := newRing()
	defer r.free()
	const events = 200_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for region := uint64(1); region <= events; region++ {
			r.push(region)
		}
	}()
	var e event
	var popped, before uint64
	look := func() {
		for r.Pop(&e) {
			popped++
			if uint64(e.region) <= before || uint64(e.start) != ^uint64(e.region) {
				t.Errorf("event %d, %#x after %d", e.region, e.start, before)
			}
			before = uint64(e.region)
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
	if lost := r.overrun(); popped+lost != events {
		t.Errorf("%d arrived, %d lost, of %d", popped, lost, events)
	}
}
