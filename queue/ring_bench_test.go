package queue

import (
	"runtime"
	"sync"
	"testing"
)

// event has the size of schedule.Event, which this package does not know.
type event [15]uint64

// fifo is what the communication thread and the helper need of a queue.
type fifo interface {
	Push(*event)
	Pop(*event) bool
}

type mutexQueue struct {
	mu         sync.Mutex
	items      []event
	head, tail uint64
}

func newMutexQueue(capacity int) *mutexQueue { return &mutexQueue{items: make([]event, capacity)} }

func (q *mutexQueue) Push(e *event) {
	q.mu.Lock()
	if q.head-q.tail == uint64(len(q.items)) {
		q.tail++
	}
	q.items[q.head%uint64(len(q.items))] = *e
	q.head++
	q.mu.Unlock()
}

func (q *mutexQueue) Pop(e *event) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.head == q.tail {
		return false
	}
	*e = q.items[q.tail%uint64(len(q.items))]
	q.tail++
	return true
}

type chanQueue chan event

func (q chanQueue) Push(e *event) {
	select {
	case q <- *e:
	default:
	}
}

func (q chanQueue) Pop(e *event) bool {
	select {
	case *e = <-q:
		return true
	default:
		return false
	}
}

// nothing is the cost of the benchmark loop itself.
type nothing struct{}

func (nothing) Push(*event)     {}
func (nothing) Pop(*event) bool { return false }

const benchCap = 1024

var queues = []struct {
	name string
	make func() fifo
}{
	{"loop", func() fifo { return nothing{} }},
	{"ring", func() fifo { return NewRing[event](benchCap) }},
	{"mutex", func() fifo { return newMutexQueue(benchCap) }},
	{"channel", func() fifo { return make(chanQueue, benchCap) }},
}

// BenchmarkPush is the producer's cost with a consumer that polls, as the
// helper does: it drains what has come and then stays away for a while.
// All three queues run in one process, so that their ratios hold.
func BenchmarkPush(b *testing.B) {
	for _, q := range queues {
		b.Run(q.name+"/alone", func(b *testing.B) { benchPushPop(b, q.make()) })
		b.Run(q.name+"/overrun", func(b *testing.B) { benchPush(b, q.make()) })
		b.Run(q.name+"/polled", func(b *testing.B) { benchConcurrent(b, q.make(), 2000) })
		b.Run(q.name+"/spinning", func(b *testing.B) { benchConcurrent(b, q.make(), 0) })
	}
}

func benchPush(b *testing.B, q fifo) {
	var e event
	for b.Loop() {
		q.Push(&e)
	}
}

// benchPushPop includes the pop, in batches, on the same core.
func benchPushPop(b *testing.B, q fifo) {
	var e event
	for n := 0; b.Loop(); n++ {
		q.Push(&e)
		if n%64 == 63 {
			for q.Pop(&e) {
			}
		}
	}
}

func benchConcurrent(b *testing.B, q fifo, idle int) {
	if runtime.GOMAXPROCS(0) < 2 {
		b.Skip("one processor: producer and consumer cannot run at the same time")
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var e event
		for {
			select {
			case <-stop:
				return
			default:
			}
			for q.Pop(&e) {
			}
			for range idle {
				spin()
			}
		}
	}()
	var e event
	for b.Loop() {
		q.Push(&e)
		for range 40 { // about the rest of an Acquire and Release
			spin()
		}
	}
	close(stop)
	<-done
}

//go:noinline
func spin() {}
