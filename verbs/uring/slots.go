package uring

import (
	"iter"

	"pinwheel/mem"
)

// slots are the slots of one registration, in the order of its pieces. A
// registration up to 1 GiB has one and needs no allocation.
type slots struct {
	n     int
	first uint16
	rest  []uint16
}

func (s *slots) add(slot uint16) {
	if s.n == 0 {
		s.first = slot
	} else {
		s.rest = append(s.rest, slot)
	}
	s.n++
}

func (s *slots) at(i int) uint16 {
	if i == 0 {
		return s.first
	}
	return s.rest[i-1]
}

// pieces cuts r into the parts that have a slot each: 1 GiB from its start on.
func pieces(r mem.Range) iter.Seq[mem.Range] {
	return func(yield func(mem.Range) bool) {
		for !r.Empty() {
			p := mem.Range{Start: r.Start, End: r.Start + mem.Addr(min(r.Len(), maxRegisteredBufferSize))}
			if !yield(p) {
				return
			}
			r.Start = p.End
		}
	}
}

// slotsFor returns how many pieces a range of n bytes has.
func slotsFor(n uint64) int {
	return int((n + maxRegisteredBufferSize - 1) / maxRegisteredBufferSize)
}
