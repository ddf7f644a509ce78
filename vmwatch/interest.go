package vmwatch

import (
	"sync/atomic"

	"pinwheel/mem"
)

const (
	granuleShift = 21 // 2 MiB
	granuleBits  = 65536
)

// interest is the set of granules that somebody watches, shared with the BPF
// programs as a bitmap hashed by address: a collision costs an extra event.
// Without it the madvise calls of Go's scavenger and the heap trimming of
// malloc flood the log. Guarded by source.mu; the bits are read by the kernel
// at any time, which is why they are raw words.
type interest struct {
	bits   *[granuleBits / 64]uint64
	counts map[uint32]uint32 // armed ranges per hashed granule
}

func (i *interest) add(r mem.Range) {
	for g := range granules(r) {
		if i.counts[g]++; i.counts[g] == 1 {
			atomic.OrUint64(&i.bits[g/64], 1<<(g%64))
		}
	}
}

func (i *interest) remove(r mem.Range) {
	for g := range granules(r) {
		if i.counts[g]--; i.counts[g] == 0 {
			delete(i.counts, g)
			atomic.AndUint64(&i.bits[g/64], ^(uint64(1) << (g % 64)))
		}
	}
}

// granules yields the hashed granule numbers of r, each once: a range longer
// than the bitmap (128 GiB) has them all.
func granules(r mem.Range) func(func(uint32) bool) {
	first := uint64(r.Start) >> granuleShift
	n := min((uint64(r.End)-1)>>granuleShift-first+1, granuleBits)
	return func(yield func(uint32) bool) {
		for k := range n {
			if !yield(uint32((first + k) % granuleBits)) {
				return
			}
		}
	}
}
