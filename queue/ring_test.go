package queue

import (
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/testwait"
)

func TestRingKeepsNewestEntriesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := NewRing[uint64](rapid.IntRange(1, 9).Draw(t, "capacity"))
		var model []uint64
		var next, lost uint64
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					next++
					r.Push(&next)
					model = append(model, next)
					if len(model) > len(r.slots) {
						model = model[1:]
						lost++
					}
				}
			},
			"pop": func(t *rapid.T) {
				for range rapid.IntRange(1, 20).Draw(t, "n") {
					var got uint64
					ok := r.Pop(&got)
					if ok != (len(model) > 0) {
						t.Fatalf("Pop() = %d, %v with %v queued", got, ok, model)
					}
					if ok {
						if got != model[0] {
							t.Fatalf("Pop() = %d, want %d", got, model[0])
						}
						model = model[1:]
					}
				}
			},
			"": func(t *rapid.T) {
				if r.Lost() != lost {
					t.Fatalf("Lost() = %d, want %d", r.Lost(), lost)
				}
			},
		})
	})
}

func TestRingCapacityIsRoundedUpToPowerOfTwo(t *testing.T) {
	for asked, want := range map[int]int{-1: 2, 0: 2, 1: 2, 2: 2, 3: 4, 1000: 1024, 1024: 1024, 1025: 2048} {
		if got := len(NewRing[int](asked).slots); got != want {
			t.Errorf("NewRing(%d) has %d slots, want %d", asked, got, want)
		}
	}
}

// The consumer may be preempted between taking an entry and freeing its slot.
func TestRingDropsNewEntryWhileItsSlotIsBeingRead(t *testing.T) {
	r := NewRing[int](2)
	push := func(v int) { r.Push(&v) }
	push(1)
	push(2)
	r.slots[0].turn.Store(taken) // the consumer has begun to pop 1
	push(3)
	push(4)
	if r.Lost() != 2 {
		t.Fatalf("Lost() = %d, want 2: 3 and 4 have no slot", r.Lost())
	}
	r.slots[0].turn.Store(free) // and has finished
	r.tail++
	push(5)
	var got [2]int
	if !r.Pop(&got[0]) || !r.Pop(&got[1]) || got != [2]int{2, 5} {
		t.Errorf("popped %v, want [2 5]", got)
	}
}

// checked is an item that shows a torn copy: all its words are equal.
type checked [15]uint64

// Run with -race: every access to an item must be ordered by its slot's turn.
func TestRingConcurrentOverrunNeverTearsReordersOrMiscounts(t *testing.T) {
	testwait.Bound(t)
	total := uint64(300_000)
	if testing.Short() {
		total = 30_000
	}
	for _, capacity := range []int{2, 8, 256} {
		r := NewRing[checked](capacity)
		done := make(chan struct{})
		go func() {
			defer close(done)
			var item checked
			for v := uint64(1); v <= total; v++ {
				for i := range item {
					item[i] = v
				}
				r.Push(&item)
				if v%997 == 0 {
					runtime.Gosched()
				}
			}
		}()
		var last, popped uint64
		drain := func() {
			var item checked
			for r.Pop(&item) {
				for _, w := range item {
					if w != item[0] {
						t.Fatalf("capacity %d: torn item %v", capacity, item)
					}
				}
				if item[0] <= last {
					t.Fatalf("capacity %d: %d after %d", capacity, item[0], last)
				}
				last = item[0]
				popped++
			}
		}
		for running := true; running; {
			select {
			case <-done:
				running = false
			default:
				runtime.Gosched()
			}
			drain()
		}
		if popped+r.Lost() != total {
			t.Errorf("capacity %d: popped %d + lost %d != pushed %d", capacity, popped, r.Lost(), total)
		}
	}
}

func TestRingDoesNotAllocate(t *testing.T) {
	r := NewRing[checked](4)
	var item checked
	allocs := testing.AllocsPerRun(100, func() {
		for range 10 {
			r.Push(&item)
		}
		r.Pop(&item)
	})
	if allocs > 0 {
		t.Errorf("push and pop allocate %v times", allocs)
	}
}
