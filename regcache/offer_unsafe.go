package regcache

import (
	"sync/atomic"
	"unsafe"

	"pinwheel/mem"
)

// What the cache offers to C threads lies in the first page of the table. offer.h, which must say the
// same as this file, has the argument. All of it is raw words for sync/atomic, since C code uses the
// same memory.

const (
	offerCount = 16
	offersAt   = 1024    // offset in the table
	offerBytes = 1 << 30 // longest range
	roomBits   = 48      // of offers.room: bytes; above them, registrations
)

// States of an offer.
const (
	offerNone    = iota
	offerOffered // anyone's who takes it
	offerTaken   // a C thread's, which registers
	offerMade    // the writer's again
	offerFailed  // likewise
)

// OfferNotes is how many words a C thread can give to Options.OnAdopt.
const OfferNotes = 4

type offer struct {
	state      uint32
	slot       uint32
	low, high  uint64
	generation uint64 // of the watcher, before the range was watched
	note       [OfferNotes]uint64
}

// offers are a struct pwt_offers.
type offers struct {
	room    uint64
	posted  uint64  // offers that C threads have given back, so far
	watches *uint32 // Interest of the watcher
	_       [5]uint64
	offer   [offerCount]offer
}

func (t *table) offers() *offers {
	return (*offers)(unsafe.Add(unsafe.Pointer(t.header), offersAt))
}

// takeBack ends lending, and returns what is left of the room.
func (o *offers) takeBack() uint64 { return atomic.SwapUint64(&o.room, 0) }

// lend adds to the room.
func (o *offers) lend(room uint64) { atomic.AddUint64(&o.room, room) }

// offerSlot makes a slot available to C threads, under the ID that the region will have. The offer must be
// the writer's.
func (t *table) offerSlot(f *offer, slot uint32, id mem.RegionID) {
	f.slot = slot
	storeWord(&f.low, 0)
	storeWord(&f.high, 0)
	storeWord(&t.desc(slot).id, uint64(id))
	atomic.StoreUint32(&f.state, offerOffered)
}

// roomFor is the room that one registration of so many bytes takes.
func roomFor(bytes uint64) uint64 { return 1<<roomBits | bytes }

// usageOf is the inverse of roomFor, for any number of registrations.
func usageOf(room uint64) Usage {
	return Usage{Bytes: int64(room & (1<<roomBits - 1)), Regions: int64(room >> roomBits)}
}
