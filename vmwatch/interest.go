package vmwatch

import (
	"sync/atomic"

	"pinwheel/mem"
)

const (
	granuleShift = 21 // 2 MiB
	granuleCount = 65536
)

// interest counts who watches each granule, hashed by address: a collision costs an extra event.
// Without it the madvise calls of Go's scavenger and the heap trimming of malloc flood the log. BPF
// programs read the counts, and C threads that register a first use change them too (regcache/offer.h),
// which is why they are raw words.
type interest [granuleCount]uint32

func (i *interest) add(r mem.Range) {
	for g := range granules(r) {
		atomic.AddUint32(&i[g], 1)
	}
}

func (i *interest) remove(r mem.Range) {
	for g := range granules(r) {
		atomic.AddUint32(&i[g], ^uint32(0))
	}
}

// granules yields the hashed granule numbers of r, each once: a range longer
// than 128 GiB has them all.
func granules(r mem.Range) func(func(uint32) bool) {
	first := uint64(r.Start) >> granuleShift
	n := min((uint64(r.End)-1)>>granuleShift-first+1, granuleCount)
	return func(yield func(uint32) bool) {
		for k := range n {
			if !yield(uint32((first + k) % granuleCount)) {
				return
			}
		}
	}
}
