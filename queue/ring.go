package queue

import (
	"math/bits"
	"sync/atomic" // C code has the words of a Slot, too
)

// Ring is DQ: a bounded queue from one producer to one consumer that loses
// its oldest entries when it is full. No call blocks, allocates or enters the
// kernel.
//
// # Who owns a slot
//
// Position p, counted from 0, lives in slot p mod capacity. Each slot has one
// word, its turn, which alone decides who may touch the item next to it:
//
//	free          the producer. It writes the item, then stores ready(p).
//	ready(p)      nobody. The consumer may take it by CAS to taken, or the
//	              producer, one lap later, by CAS to free. One of them wins.
//	taken         the consumer. It copies the item, then stores free.
//
// An item is only read or written by the owner, and ownership passes only
// through an atomic write that the next owner has read. So each access happens
// before the next one in the sense of the Go memory model: there is no data
// race to be argued away, overrun included, as there would be in a ring whose
// reader copies first and validates afterwards (a seqlock).
//
// Neither side reads the other's index: the turn next to the item tells everything, so no cache line bounces between
// them but the slot itself. (The paper's ring, section 4.1, compares the two indices; this is its circular queue with
// the test moved into the slot, as in FastForward, PPoPP'08.)
//
// # Why overrun is harmless, and why the old entries go
//
// A lost entry means that the helper does not hear of one use. The region
// stays registered, which costs memory and never correctness; the next use of
// it that does arrive corrects the prediction. The ring overruns when the
// helper was held up while communication went on, and what the helper needs
// then is the end of that phase: the last use before the computation decides
// what may be deregistered meanwhile. Dropping new entries would lose exactly
// these.
//
// One case does drop the new entry: the ring is full and the consumer is, at
// this moment, copying the oldest entry, whose slot is the one needed. Waiting
// for it would let a preempted helper stall the communication path.
type Ring[T any] struct {
	slots []Slot[T]
	mask  uint64
	_     [cacheLine]byte

	// The producer's.
	head uint64 // position of the next push
	lost atomic.Uint64
	_    [cacheLine]byte

	// The consumer's.
	tail uint64 // position of the next pop
	_    [cacheLine]byte
}

// Slot is the memory of one position. It holds the item first: with an Event of 120 bytes a Slot is two whole
// cache lines and never shares one with its neighbour.
type Slot[T any] struct {
	item T
	turn atomic.Uint64
}

// cacheLine is two lines of 64 bytes, since x86 prefetches them in pairs.
const cacheLine = 128

// Values of Slot.turn, which mpishim/core/shared.h has, too. ready(p) is even and at least 2.
const (
	free  = 0
	taken = 1
)

func ready(pos uint64) uint64 { return 2*pos + 2 }

// MaxEntries is the size of the largest useful ring, which takes some MiB: entries
// that have waited for longer no longer help the helper.
const MaxEntries = 1 << 16

// NewRing returns an empty ring for at least the given number of entries, at
// most MaxEntries, rounded up to a power of two of at least 2.
func NewRing[T any](capacity int) *Ring[T] {
	n := uint64(1) << bits.Len64(uint64(min(max(capacity, 2), MaxEntries)-1))
	return &Ring[T]{slots: make([]Slot[T], n), mask: n - 1}
}

// Push appends a copy of *item, at the expense of the oldest entry if the
// ring is full. Producer only.
func (r *Ring[T]) Push(item *T) {
	s := &r.slots[r.head&r.mask]
	if turn := s.turn.Load(); turn != free && !r.reclaim(s, turn) {
		return
	}
	s.item = *item
	s.turn.Store(ready(r.head))
	r.head++
}

// reclaim makes the slot of the oldest entry free for the producer. It fails
// if the consumer is busy with it; the new entry is lost then.
func (r *Ring[T]) reclaim(s *Slot[T], turn uint64) bool {
	if turn != taken && s.turn.CompareAndSwap(turn, free) {
		r.lost.Add(1)
		return true
	}
	// The consumer has taken the entry, and may have finished with it since.
	if s.turn.Load() == free {
		return true
	}
	r.lost.Add(1)
	return false
}

// Pop moves the oldest entry to *item and reports whether there was one.
// While an overrun is going on it may report none although newer entries are
// there; it never returns them out of order. Consumer only.
func (r *Ring[T]) Pop(item *T) bool { return pop(r.slots, &r.tail, item) }

func pop[T any](slots []Slot[T], tail *uint64, item *T) bool {
	mask := uint64(len(slots) - 1)
	for {
		s := &slots[*tail&mask]
		turn := s.turn.Load()
		if turn == free {
			return false
		}
		if turn != ready(*tail) {
			// Overrun: the slot holds a later lap's entry p, and everything
			// up to p - capacity is gone.
			*tail = (turn-2)/2 - mask
			continue
		}
		if s.turn.CompareAndSwap(turn, taken) {
			*item = s.item
			s.turn.Store(free)
			*tail++
			return true
		}
	}
}

// Consumer takes entries out of a ring whose producer is C code (mpishim/core/ring.h), in memory that is C's.
type Consumer[T any] struct {
	slots []Slot[T]
	tail  *uint64
}

// NewConsumer returns the consumer of a ring of this many slots, a power of two. At tail it keeps its position, 0 at
// first, for who consumes after it.
func NewConsumer[T any](slots []Slot[T], tail *uint64) Consumer[T] { return Consumer[T]{slots, tail} }

// Pop is Ring.Pop.
func (c Consumer[T]) Pop(item *T) bool { return pop(c.slots, c.tail, item) }

// Lost returns the number of entries lost so far. Any goroutine may ask.
func (r *Ring[T]) Lost() uint64 { return r.lost.Load() }
