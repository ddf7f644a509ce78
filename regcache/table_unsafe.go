package regcache

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// The table holds the known regions in memory outside the Go heap, for hits
// from Go and from C (table.h, which must say the same as this file).
//
// One writer at a time changes it, under Cache.mu. Readers take no lock:
//
//   - An entry is read like a seqlock: its state word changes with every change
//     of its other words. A reader loads the state, matches the range, loads the
//     keys, counts its reference, and loads the state again. If that is unchanged and open,
//     the region was registered when the reference was already counted.
//   - References are counted per Local, in words that only the Local's owner
//     writes. The writer closes the entries of a region, makes every running
//     thread pass a memory barrier (membarrier(2)), and then adds up the words
//     of all Locals. A reader counts first and checks the entry afterwards; the
//     writer closes first and adds up afterwards. So either the writer sees the
//     reference or the reader sees the entry closed and takes its count back.
//     A reference may be dropped through another Local than it was taken
//     through: only the sum, modulo 2^24, has a meaning. While the writer adds
//     up, real references can only be dropped, so the sum is never too low.
//   - Where an entry lies has no meaning: an entry that matches is right
//     wherever it is found. Entries can therefore move, when one is erased or
//     the table grows, at the price of a reader that misses one and asks the
//     writer. Areas are never unmapped before the table is.
//
// All of it is raw words for sync/atomic: C code uses the same memory, and the padding
// keeps what hits read on cache lines of its own.

const (
	tableMagic   = 0x31454c4241545750 // "PWTABLE1", little endian
	tableVersion = 1

	entryShift = 5 // log2 of the size of an entry
	descShift  = 6

	slotBits = 24 // of entry.state: slot+1, 0 for an empty entry
	slotMask = 1<<slotBits - 1
	openBit  = 1 << slotBits
	seqUnit  = 1 << (slotBits + 1)

	countBits = 24 // of a reference word: references; above them the epoch of the last use
	countMask = 1<<countBits - 1

	rightsMask = 0x0f // of entry.low: local write, remote write, remote read, remote atomic
	kindMask   = 0x30 // on demand, relaxed ordering
	otherBit   = 0x40

	whichMask  = 3 // of entry.high: whether the entry is found by its range or by a granule
	whichExact = 0
	whichFirst = 1 // granule that holds the start
	whichLast  = 2 // granule that holds the end, if another

	flagFenced      = 1 << 0             // of header.flags: no membarrier; readers use a full fence
	flagAnyCovering = 1 << 1             // any open region that covers a request will do
	descRetired     = 1 << 0             // of desc.flags: look after the last reference
	descAbsent      = 1 << 1             // likewise: a C thread may register the region by itself
	golden          = 0x9e3779b97f4a7c15 // 2^64 / golden ratio
	smallestArea    = 7                  // log2 of the entries of the first hash area
	hugeArea        = 16                 // of one that fills a huge page
	mostSmallPages  = 13                 // of the largest one that is not in huge pages
	headerBytes     = 4096
)

// header is the beginning of the table. The second cache line is what a hit
// reads of it; the writer writes it on misses only.
type header struct {
	magic    uint64
	version  uint32
	capacity uint32 // slots
	descs    uint64 // offset of the descriptors
	size     uint64 // bytes of the whole table
	_        [32]byte

	exact    uint64         // cursor of the area of regions by range: its offset | 64 - log2(entries)
	granules uint64         // cursor of the area of regions by granule
	classes  uint64         // bit k: there are regions longer than 2^(k-1) and at most 2^k bytes
	gen      unsafe.Pointer // *uint64, atomic: word that moves before a mapping changes
	seen     uint64         // its value up to which changes have been dealt with
	epoch    uint64         // advances with every miss: the clock of least recently used
	retired  uint32         // registrations that live only until their last reference is dropped
	flags    uint32
	pageMask uint64 // page size - 1

	still  uint64 // what gen points to without a watcher
	undone uint32 // C code gave up a hit on a retired registration: some may be left without references
	_      uint32
	log    unsafe.Pointer // *change, atomic: what each step of gen changed; nil: only the watcher can tell
	_      [40]byte
}

// change is a record of a GrantWatcher. C code reads it.
type change struct{ _, end, check, seq uint64 }

// entry is one place of a hash area. A region has one where its range is
// looked up, and one for each of the one or two granules of its class (2^k bytes)
// that it touches.
type entry struct {
	state uint64 // sequence | open | slot+1
	low   uint64 // start | rights and kind
	high  uint64 // end | which
	keys  uint64 // lkey | rkey<<32
}

// mismatch is zero if the entry, of this state, is open to requests for exactly the pages low
// to high with the rights want. It has no branches: a hit would pay for each that the
// processor predicts wrongly.
func (e *entry) mismatch(state, low, high, pageMask, want uint64) uint64 {
	return (loadWord(&e.low)^low)&^pageMask | (loadWord(&e.high) ^ high) | lacks(loadWord(&e.low), want) | ^state&openBit
}

// desc describes the registration in a slot, for as long as there are references.
type desc struct {
	id     uint64
	low    uint64
	high   uint64
	keys   uint64
	handle uint64
	flags  uint32
	access uint32
	_      [16]byte
}

// counts is the memory of one Local: references by slot.
type counts struct {
	table *header
	hits  uint64
	_     [48]byte
	// followed by capacity words: epoch of last use | references
}

type table struct {
	*header
	mem      []byte
	locals   []*counts
	localMem [][]byte
	areas    [2]areaLoad // of exact and granules
	byClass  [64]int
	free     []uint32 // slots
	next     uint32   // first slot that was never used
	confined bool
	barriers int // made so far, for tests
}

// newTable reserves address space for so many slots; memory is used as slots are.
func newTable(slots int, confined bool) (*table, error) {
	if slots < 1 || slots >= slotMask {
		return nil, fmt.Errorf("regcache: %d regions: want 1 to %d", slots, slotMask-1)
	}
	// Areas of ascending size follow each other; see mustGrow for how full they get.
	last := max(smallestArea, bits.Len(uint(slots*4-1))) // log2 of the entries of the largest
	areas := (uint64(2)<<last - 1<<smallestArea) << entryShift
	const first = 1 << smallestArea << entryShift // with one before it, all areas would begin at a multiple of their size
	align := min(uint64(1)<<last, 1<<hugeArea) << entryShift
	descs := uint64(headerBytes)
	end := descs + uint64(slots)<<descShift
	m, err := reserve(int(end + align + 2*(first+areas)))
	if err != nil {
		return nil, err
	}
	base := uint64(uintptr(unsafe.Pointer(&m[0])))
	exact := (base+end+align-1)&^(align-1) - base + first
	granules := exact + areas + first
	t := &table{header: (*header)(unsafe.Pointer(&m[0])), mem: m, confined: confined}
	t.areas = [2]areaLoad{
		{cursor: &t.exact, places: 1 << smallestArea, maxPlaces: 1 << last},
		{cursor: &t.granules, places: 1 << smallestArea, maxPlaces: 1 << last, shared: true},
	}
	t.magic, t.version, t.capacity = tableMagic, tableVersion, uint32(slots)
	t.descs, t.size, t.epoch = descs, uint64(len(m)), 1
	t.pageMask = mem.PageSize - 1
	t.watch(&t.still)
	t.exact, t.granules = cursorOf(exact, 64-smallestArea), cursorOf(granules, 64-smallestArea)
	if !confined && !haveMembarrier() {
		t.flags |= flagFenced
	}
	return t, nil
}

func reserve(n int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("regcache: mmap of %s for the table: %w (raise RLIMIT_AS or lower the number of regions)",
			mem.FormatBytes(uint64(n)), err)
	}
	return m, nil
}

// addLocal makes the memory of one more Local.
func (t *table) addLocal() (*counts, error) {
	m, err := reserve(int(unsafe.Sizeof(counts{})) + int(t.capacity)*8)
	if err != nil {
		return nil, err
	}
	c := (*counts)(unsafe.Pointer(&m[0]))
	c.table = t.header
	t.locals, t.localMem = append(t.locals, c), append(t.localMem, m)
	return c, nil
}

// watch makes hits look at another generation word.
func (h *header) watch(word *uint64) { atomic.StorePointer(&h.gen, unsafe.Pointer(word)) }

// generation is the word that moves before a mapping changes.
func (h *header) generation() uint64 { return atomic.LoadUint64((*uint64)(atomic.LoadPointer(&h.gen))) }

// current reports whether the cache has dealt with all changes of mappings.
func (h *header) current() bool { return h.generation() == atomic.LoadUint64(&h.seen) }

// setLog has hits look in a log what the generation has changed.
func (h *header) setLog(first *uint64) { atomic.StorePointer(&h.log, unsafe.Pointer(first)) }

// stopHits sends every request to the writer from now on. Hits under way may
// still read the watcher's word and log.
func (h *header) stopHits() {
	h.setLog(nil) // first: what the word says from now on is no number of the log
	atomic.StoreUint64(&h.still, atomic.LoadUint64(&h.seen)+1)
	h.watch(&h.still)
}

// hits adds up those of all Locals.
func (t *table) hits() (n uint64) {
	for _, f := range t.locals {
		n += atomic.LoadUint64(&f.hits)
	}
	return n
}

// unmap gives the memory back; nobody uses the table any more. Locals are to
// look at the header that is there now, in which nothing is a hit.
func (t *table) unmap() error {
	t.header = &header{}
	t.stopHits()
	var errs []error
	for _, m := range append(t.localMem, t.mem) {
		errs = append(errs, unix.Munmap(m))
	}
	t.localMem, t.locals, t.mem = nil, nil, nil
	return errors.Join(errs...)
}

func (h *header) desc(slot uint32) *desc {
	return (*desc)(unsafe.Add(unsafe.Pointer(h), uintptr(h.descs)+uintptr(slot)<<descShift))
}

// slotOf is the inverse of desc.
func (h *header) slotOf(d *desc) uint32 {
	return uint32((uintptr(unsafe.Pointer(d)) - uintptr(unsafe.Pointer(h)) - uintptr(h.descs)) >> descShift)
}

// word returns the reference word of a slot.
func (c *counts) word(slot uint32) *uint64 {
	return (*uint64)(unsafe.Add(unsafe.Pointer(c), unsafe.Sizeof(*c)+uintptr(slot)<<3))
}

// used reports whether a reference was ever counted, in one of the first slots:
// every count leaves an epoch.
func (c *counts) used(slots uint32) bool {
	for slot := range slots {
		if atomic.LoadUint64(c.word(slot)) != 0 {
			return true
		}
	}
	return false
}

// area is a hash area as a cursor names it.
type area struct {
	base  unsafe.Pointer
	shift uint64 // 64 - log2(places)
}

// cursorOf makes the cursor of an area: its offset in the table, a multiple of 64, and its shift.
func cursorOf(offset, shift uint64) uint64 { return offset | shift }

func (h *header) area(cursor uint64) area {
	return area{unsafe.Add(unsafe.Pointer(h), uintptr(cursor&^63)), cursor & 63}
}

func (a area) at(i uint64) *entry { return (*entry)(unsafe.Add(a.base, uintptr(i)<<entryShift)) }
func (a area) mask() uint64       { return 1<<(64-a.shift) - 1 }

// place is where a granule should be (Fibonacci hashing; Knuth, vol. 3, 6.4).
func (a area) place(granule uint64) uint64 { return granule * golden >> (a.shift & 63) }

// placeExact is where a range should be.
func (a area) placeExact(low, high uint64) uint64 { return (low + 3*high) * golden >> (a.shift & 63) }

// class is the k of a range of n bytes: the smallest with n <= 2^k.
func class(n uint64) uint64 { return uint64(bits.Len64(n - 1)) }

// packAccess is the form of access rights in an entry; with otherBit, which
// no entry has, if there are rights that the table can't express.
func packAccess(a verbs.Access) uint64 {
	const rights = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	p := uint64(a&rights | a&verbs.AccessOnDemand>>2 | a&verbs.AccessRelaxedOrdering>>15)
	if a&^(rights|verbs.AccessOnDemand|verbs.AccessRelaxedOrdering) != 0 {
		p |= otherBit
	}
	return p
}

// lacks is zero if an entry's rights suffice: each that is wanted, and equal kind.
func lacks(low, want uint64) uint64 {
	return (want&^low | (want^low)&kindMask) & (rightsMask | kindMask | otherBit)
}
