package regcache

import (
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
//     of its other words. A reader loads the state, matches the range, counts
//     its reference, and loads the state again. If that is unchanged and open,
//     the region was registered when the reference was already counted.
//   - References are counted per front, in words that only the front's owner
//     writes. The writer closes the entries of a region, makes every running
//     thread pass a memory barrier (membarrier(2)), and then adds up the words
//     of all fronts. A reader counts first and checks the entry afterwards; the
//     writer closes first and adds up afterwards. So either the writer sees the
//     reference or the reader sees the entry closed and takes its count back.
//     A reference may be dropped through another front than it was taken
//     through: only the sum, modulo 2^24, has a meaning. While the writer adds
//     up, real references can only be dropped, so the sum is never too low.
//   - Where an entry lies has no meaning: an entry that matches is right
//     wherever it is found. Entries can therefore move, when one is erased or
//     the table grows, at the price of a reader that misses one and asks the
//     writer. Areas are never unmapped before the table is.

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

	secondBit = 1 // of entry.high: the entry of the second granule

	flagFenced   = 1 << 0 // of header.flags: no membarrier; readers use a full fence
	descRetired  = 1 << 0 // of desc.flags: look after the last reference
	golden       = 0x9e3779b97f4a7c15
	smallestArea = 10 // log2 of the entries of the first hash area
)

// header is the beginning of the table. The second cache line is what a hit
// reads of it; the writer writes it on misses only.
type header struct {
	magic    uint64
	version  uint32
	capacity uint32 // slots
	descs    uint64 // offset of the descriptors
	areas    uint64 // offset of the hash areas
	size     uint64 // bytes of the whole table
	_        [24]byte

	cursor   uint64  // hash area in use: its offset | 64 - log2(entries)
	classes  uint64  // bit k: there are regions longer than 2^(k-1) and at most 2^k bytes
	gen      *uint64 // word that moves before a mapping changes
	seen     uint64  // its value up to which changes have been dealt with
	epoch    uint64  // advances with every miss: the clock of least recently used
	retired  uint32  // registrations that live only until their last reference is dropped
	flags    uint32
	pageMask uint64 // page size - 1
	_        [8]byte

	still uint64 // what gen points to without a watcher
	_     [56]byte
}

// entry is one place of a hash area. A region has one entry for each of the
// one or two granules of its class (2^k bytes) that it touches.
type entry struct {
	state uint64 // sequence | open | slot+1
	low   uint64 // start | rights and kind
	high  uint64 // end | second
	keys  uint64 // lkey | rkey<<32
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

// counts is the memory of one front: references by slot.
type counts struct {
	table *header
	hits  uint64
	_     [48]byte
	// followed by capacity words: epoch of last use | references
}

type table struct {
	*header
	mem      []byte
	fronts   []*counts
	frontMem [][]byte
	keys     int // entries in use
	byClass  [64]int
	free     []uint32 // slots
	next     uint32   // first slot that was never used
	confined bool
}

// newTable reserves address space for so many slots; memory is used as slots are.
func newTable(slots int, confined bool) (*table, error) {
	if slots < 1 || slots >= slotMask {
		return nil, fmt.Errorf("regcache: %d regions: want 1 to %d", slots, slotMask-1)
	}
	last := max(smallestArea, bits.Len(uint(slots*4-1))) // two entries a region, at most half full
	const headerBytes = 4096
	descs := uint64(headerBytes)
	areas := descs + uint64(slots)<<descShift
	areas = (areas + 4095) &^ 4095
	size := areas + (uint64(1)<<(last+1)-1<<smallestArea)<<entryShift
	m, err := reserve(int(size))
	if err != nil {
		return nil, err
	}
	t := &table{header: (*header)(unsafe.Pointer(&m[0])), mem: m, confined: confined}
	t.magic, t.version, t.capacity = tableMagic, tableVersion, uint32(slots)
	t.descs, t.areas, t.size = descs, areas, size
	t.gen, t.pageMask = &t.still, mem.PageSize-1
	t.cursor = areas | (64 - smallestArea)
	if !confined && !haveMembarrier() {
		t.flags |= flagFenced
	}
	return t, nil
}

func reserve(n int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("regcache: mmap of %s for the table: %w (raise RLIMIT_AS or lower the number of regions)", mem.FormatBytes(uint64(n)), err)
	}
	return m, nil
}

// addFront makes the memory of one more front.
func (t *table) addFront() (*counts, error) {
	m, err := reserve(int(unsafe.Sizeof(counts{})) + int(t.capacity)*8)
	if err != nil {
		return nil, err
	}
	c := (*counts)(unsafe.Pointer(&m[0]))
	c.table = t.header
	t.fronts, t.frontMem = append(t.fronts, c), append(t.frontMem, m)
	return c, nil
}

func (t *table) unmap() error {
	for _, m := range t.frontMem {
		if err := unix.Munmap(m); err != nil {
			return fmt.Errorf("regcache: munmap of a front: %w", err)
		}
	}
	t.frontMem, t.fronts = nil, nil
	return unix.Munmap(t.mem)
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

// area is a hash area as a cursor names it.
type area struct {
	base  unsafe.Pointer
	shift uint64
}

func (h *header) area(cursor uint64) area {
	return area{unsafe.Add(unsafe.Pointer(h), uintptr(cursor&^63)), cursor & 63}
}

func (a area) at(i uint64) *entry { return (*entry)(unsafe.Add(a.base, uintptr(i)<<entryShift)) }
func (a area) mask() uint64       { return 1<<(64-a.shift) - 1 }

// place is where the entry of a granule should be.
func (a area) place(granule uint64) uint64 { return granule * golden >> (a.shift & 63) }

// class is the k of a range of n bytes: the smallest with n <= 2^k.
func class(n uint64) uint64 { return uint64(bits.Len64(n - 1)) }

// packAccess is the form of access rights in an entry; false if there is no such form.
func packAccess(a verbs.Access) (uint64, bool) {
	const rights = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
	p := uint64(a & rights)
	if a&verbs.AccessOnDemand != 0 {
		p |= 0x10
	}
	if a&verbs.AccessRelaxedOrdering != 0 {
		p |= 0x20
	}
	return p, a&^(rights|verbs.AccessOnDemand|verbs.AccessRelaxedOrdering) == 0
}

// lacks is zero if an entry's rights suffice: each that is wanted, and equal kind.
func lacks(low, want uint64) uint64 {
	return (want&^low | (want^low)&kindMask) & (rightsMask | kindMask)
}

// allocate returns a slot that nothing refers to; false if all are taken.
func (t *table) allocate() (uint32, bool) {
	if n := len(t.free); n > 0 {
		s := t.free[n-1]
		t.free = t.free[:n-1]
		return s, true
	}
	if t.next == t.capacity {
		return 0, false
	}
	t.next++
	return t.next - 1, true
}

// release gives a slot without references back.
func (t *table) release(slot uint32) { t.free = append(t.free, slot) }

// references adds up who uses a slot. The result is exact for a slot that
// was closed before a barrier: see above.
func (t *table) references(slot uint32) uint64 {
	var n uint64
	for _, c := range t.fronts {
		n += atomic.LoadUint64(c.word(slot))
	}
	return n & countMask
}

// lastUse is the epoch in which a slot was last used.
func (t *table) lastUse(slot uint32) uint64 {
	var e uint64
	for _, c := range t.fronts {
		e = max(e, atomic.LoadUint64(c.word(slot))>>countBits)
	}
	return e
}

// insert adds the entries of a closed region.
func (t *table) insert(slot uint32, r mem.Range, access uint64) {
	if uint64(t.keys+2)*2 > t.area(t.cursor).mask()+1 {
		t.grow()
	}
	k := class(r.Len())
	first, second := uint64(r.Start)>>k, uint64(r.End-1)>>k
	t.put(t.area(t.cursor), first, entry{uint64(slot) + 1, uint64(r.Start) | access, uint64(r.End), 0})
	if second != first {
		t.put(t.area(t.cursor), second, entry{uint64(slot) + 1, uint64(r.Start) | access, uint64(r.End) | secondBit, 0})
	}
	if t.byClass[k]++; t.byClass[k] == 1 {
		atomic.StoreUint64(&t.classes, t.classes|1<<k)
	}
}

func (t *table) put(a area, granule uint64, e entry) {
	i := a.place(granule)
	for a.at(i).state&slotMask != 0 {
		i = (i + 1) & a.mask()
	}
	a.at(i).write(e)
	t.keys++
}

// write changes an entry as a whole; e.state carries slot and openness.
func (e *entry) write(to entry) {
	seq := e.state &^ (seqUnit - 1)
	atomic.StoreUint64(&e.state, seq+seqUnit)
	atomic.StoreUint64(&e.low, to.low)
	atomic.StoreUint64(&e.high, to.high)
	atomic.StoreUint64(&e.keys, to.keys)
	atomic.StoreUint64(&e.state, seq+2*seqUnit|to.state&(openBit|slotMask))
}

// each calls f with the places of the entries of a region, which must be there.
func (t *table) each(slot uint32, r mem.Range, f func(a area, i uint64)) {
	a, k := t.area(t.cursor), class(r.Len())
	first, second := uint64(r.Start)>>k, uint64(r.End-1)>>k
	f(a, a.find(first, slot, 0))
	if second != first {
		f(a, a.find(second, slot, secondBit))
	}
}

func (a area) find(granule uint64, slot uint32, which uint64) uint64 {
	i := a.place(granule)
	for e := a.at(i); e.state&slotMask != uint64(slot)+1 || e.high&secondBit != which; e = a.at(i) {
		if e.state&slotMask == 0 {
			panic(fmt.Sprintf("regcache: entry of slot %d is lost", slot))
		}
		i = (i + 1) & a.mask()
	}
	return i
}

// open makes a region available to hits.
func (t *table) open(slot uint32, r mem.Range, keys uint64) {
	t.each(slot, r, func(a area, i uint64) {
		e := *a.at(i)
		e.state |= openBit
		e.keys = keys
		a.at(i).write(e)
	})
}

// close ends hits on a region. Hits that came before show in references
// after the next barrier.
func (t *table) close(slot uint32, r mem.Range) {
	t.each(slot, r, func(a area, i uint64) {
		e := a.at(i)
		atomic.StoreUint64(&e.state, e.state&^openBit+seqUnit)
	})
}

// erase removes the entries of a closed region.
func (t *table) erase(slot uint32, r mem.Range) {
	t.each(slot, r, func(a area, i uint64) {
		t.remove(a, i)
		t.keys--
	})
	k := class(r.Len())
	if t.byClass[k]--; t.byClass[k] == 0 {
		atomic.StoreUint64(&t.classes, t.classes&^(1<<k))
	}
}

// remove empties place i and moves later entries of the run up, so that no
// run has a gap (Knuth, vol. 3, 6.4, algorithm R).
func (t *table) remove(a area, i uint64) {
	m := a.mask()
	for j := (i + 1) & m; a.at(j).state&slotMask != 0; j = (j + 1) & m {
		if e := *a.at(j); (j-a.place(e.granule()))&m >= (j-i)&m {
			a.at(i).write(e)
			i = j
		}
	}
	a.at(i).write(entry{})
}

func (e *entry) granule() uint64 {
	start, end := e.low&^(rightsMask|kindMask), e.high&^secondBit
	k := class(end - start)
	if e.high&secondBit != 0 {
		return (end - 1) >> k
	}
	return start >> k
}

// grow moves to an area of twice the size. Readers go on in the old one
// until its entries are emptied, when they ask the writer or look again.
func (t *table) grow() {
	old := t.area(t.cursor)
	entries := old.mask() + 1
	next := t.cursor&^63 + entries<<entryShift | (old.shift - 1)
	to := t.area(next)
	t.keys = 0
	for i := range entries {
		if e := old.at(i); e.state&slotMask != 0 {
			t.put(to, e.granule(), *e)
		}
	}
	atomic.StoreUint64(&t.cursor, next)
	for i := range entries {
		if e := old.at(i); e.state&slotMask != 0 {
			e.write(entry{})
		}
	}
}
