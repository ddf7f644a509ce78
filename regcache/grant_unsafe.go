package regcache

import (
	"sync/atomic"
	"unsafe"

	"pinwheel/mem"
)

// What the cache grants to C threads lies in the first page of the table. grant.h, which must say the
// same as this file, has the argument. All of it is raw words for sync/atomic, since C code uses the
// same memory.

const (
	grantCount = 16
	grantsAt   = 1024    // offset in the table
	grantBytes = 1 << 30 // longest range
	creditBits = 48      // of grants.credit: bytes; above them, registrations
)

// States of a grant.
const (
	grantNone   = iota
	grantFree   // anyone's who takes it
	grantTaken  // a C thread's, which registers
	grantMade   // the writer's again
	grantFailed // likewise
)

// GrantNotes is how many words a C thread can give to Options.OnPublish.
const GrantNotes = 4

type grant struct {
	state      uint32
	slot       uint32
	low, high  uint64
	generation uint64 // of the watcher, before the range was watched
	note       [GrantNotes]uint64
}

// grants are a struct pwt_grants.
type grants struct {
	credit  uint64
	posted  uint64  // grants that C threads have given back, so far
	watches *uint32 // Interest of the watcher
	_       [5]uint64
	grant   [grantCount]grant
}

func (t *table) grants() *grants {
	return (*grants)(unsafe.Add(unsafe.Pointer(t.header), grantsAt))
}

// withdraw takes the credit back, and returns what is left of it.
func (o *grants) withdraw() uint64 { return atomic.SwapUint64(&o.credit, 0) }

// give adds to the credit.
func (o *grants) give(credit uint64) { atomic.AddUint64(&o.credit, credit) }

// grantSlot makes a slot available to C threads, under the ID that the region will have. The grant must be
// the writer's.
func (t *table) grantSlot(f *grant, slot uint32, id mem.RegionID) {
	f.slot = slot
	storeWord(&f.low, 0)
	storeWord(&f.high, 0)
	storeWord(&t.desc(slot).id, uint64(id))
	atomic.StoreUint32(&f.state, grantFree)
}

// creditFor is what one registration of so many bytes takes.
func creditFor(bytes uint64) uint64 { return 1<<creditBits | bytes }

// usageOf is the inverse of creditFor, for any number of registrations.
func usageOf(credit uint64) Usage {
	return Usage{Bytes: int64(credit & (1<<creditBits - 1)), Regions: int64(credit >> creditBits)}
}
