package vmwatch

import (
	"sync/atomic"

	"pinwheel/mem"
)

// What Watcher.Interest counts by: granules of 2 MiB, by their number modulo GranuleCount. grant.h of package regcache
// and the BPF programs say the same, for C.
const (
	GranuleBits  = 21
	GranuleCount = 1 << 16
)

// interest counts who watches each granule, hashed by address: a collision costs an extra event.
// Without it the madvise calls of Go's scavenger and the heap trimming of malloc flood the log. BPF
// programs read the counts, and C threads that register a first use change them too (regcache/grant.h),
// which is why they are raw words.
type interest [GranuleCount]uint32

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
	first := uint64(r.Start) >> GranuleBits
	n := min((uint64(r.End)-1)>>GranuleBits-first+1, GranuleCount)
	return func(yield func(uint32) bool) {
		for k := range n {
			if !yield(uint32((first + k) % GranuleCount)) {
				return
			}
		}
	}
}
