package regcache

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// allocate returns a slot without references, or false if all are taken.
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
func (t *table) release(slot uint32) { t.free = append(roomForOne(t.free), slot) }

// references adds up the references to a slot. The result is exact for a slot that was closed
// before a barrier: see table_unsafe.go.
func (t *table) references(slot uint32) uint64 {
	var n uint64
	for _, c := range t.locals {
		n += atomic.LoadUint64(c.word(slot))
	}
	return n & countMask
}

// lastUse is the epoch in which a slot was last used.
func (t *table) lastUse(slot uint32) uint64 {
	var e uint64
	for _, c := range t.locals {
		e = max(e, atomic.LoadUint64(c.word(slot))>>countBits)
	}
	return e
}

// entries returns the entries by which a region is found.
func entries(slot uint32, r mem.Range, access uint64) (e [3]entry, n int) {
	k := class(r.Len())
	for which := range uint64(3) {
		if which == whichLast && uint64(r.Start)>>k == uint64(r.End-1)>>k {
			break
		}
		e[which] = entry{uint64(slot) + 1, uint64(r.Start) | access, uint64(r.End) | which, 0}
		n++
	}
	return e, n
}

// areaLoad is what the writer knows of one of the two hash areas.
type areaLoad struct {
	cursor            *uint64
	places, maxPlaces uint64 // for entries: now, and when it can't grow any more
	used              uint64 // entries
	displaced         uint64 // of them, not at the place where a reader looks first
	shared            bool   // several entries may want the same place
}

// loadOf returns the load of the area that e belongs in.
func (t *table) loadOf(e *entry) *areaLoad {
	if e.high&whichMask == whichExact {
		return &t.areas[0]
	}
	return &t.areas[1]
}

// mustGrow reports whether an area has to grow before it takes one more entry.
//
// An area that entries share may fill to one half. In the other one each displaced entry
// costs every hit on it a mispredicted branch, so that it fills to a quarter, and grows
// earlier if more than one entry in 16 is displaced. Regions at a regular distance, the
// usual case, displace each other often or not at all, which a doubled area changes.
func (b *areaLoad) mustGrow() bool {
	if b.places == b.maxPlaces {
		return false // which is half empty with every slot in use
	}
	if b.shared {
		return 2*(b.used+1) > b.places
	}
	tooFull := 4*(b.used+1) > b.places
	tooManyDisplaced := 16*b.displaced > b.used && 32*b.used > b.places
	return tooFull || tooManyDisplaced
}

// place returns where e should be.
func (e *entry) place(a area) uint64 {
	start, end, which := e.low&^(rightsMask|kindMask), e.high&^whichMask, e.high&whichMask
	switch k := class(end - start); which {
	case whichExact:
		return a.placeExact(start, end)
	case whichFirst:
		return a.place(start >> k)
	default:
		return a.place((end - 1) >> k)
	}
}

// insert adds the entries of a closed region.
func (t *table) insert(slot uint32, r mem.Range, access uint64) {
	es, n := entries(slot, r, access)
	for _, e := range es[:n] {
		b := t.loadOf(&e)
		for b.mustGrow() {
			t.grow(b)
		}
		t.area(*b.cursor).claim(e, b).write(e)
	}
	k := class(r.Len())
	if t.byClass[k]++; t.byClass[k] == 1 {
		atomic.StoreUint64(&t.classes, t.classes|1<<k)
	}
}

// claim returns the free place that e goes to, and counts e.
func (a area) claim(e entry, b *areaLoad) *entry {
	i := e.place(a)
	if b.used++; a.at(i).state&slotMask != 0 {
		b.displaced++
	}
	for a.at(i).state&slotMask != 0 {
		i = (i + 1) & a.mask()
	}
	return a.at(i)
}

// write changes a whole entry. It takes the slot and the open bit of to.state, not its sequence.
func (e *entry) write(to entry) {
	seq := e.state &^ (seqUnit - 1)
	if e.state&slotMask != 0 { // a reader that has an older state of an empty entry sees that it changed
		atomic.StoreUint64(&e.state, seq+seqUnit)
	}
	storeWord(&e.low, to.low)
	storeWord(&e.high, to.high)
	storeWord(&e.keys, to.keys)
	storeWord(&e.state, seq+2*seqUnit|to.state&(openBit|slotMask))
}

// empty makes an entry empty. Before references to its slot are read comes a fence, that of retire
// at least.
func (e *entry) empty() {
	storeWord(&e.state, e.state&^(seqUnit-1)+seqUnit)
}

// find returns the place of an entry that must be there.
func (a area) find(e entry) uint64 {
	i := e.place(a)
	for {
		at := a.at(i)
		if (at.state^e.state)&slotMask == 0 && (at.high^e.high)&whichMask == 0 {
			return i
		}
		if at.state&slotMask == 0 {
			panic(fmt.Sprintf("regcache: an entry of slot %d is lost", e.state&slotMask-1))
		}
		i = (i + 1) & a.mask()
	}
}

// open makes a region available to hits.
func (t *table) open(slot uint32, r mem.Range, keys uint64) {
	es, n := entries(slot, r, 0)
	for _, e := range es[:n] {
		a := t.area(*t.loadOf(&e).cursor)
		at := a.at(a.find(e))
		// Nobody reads the keys of a closed entry.
		storeWord(&at.keys, keys)
		storeWord(&at.state, (at.state|openBit)+seqUnit)
	}
}

// close ends hits on a region. Hits that came before show in references
// after the next barrier.
func (t *table) close(slot uint32, r mem.Range) {
	es, n := entries(slot, r, 0)
	for _, e := range es[:n] {
		a := t.area(*t.loadOf(&e).cursor)
		at := a.at(a.find(e))
		atomic.StoreUint64(&at.state, at.state&^openBit+seqUnit)
	}
}

// erase removes the entries of a closed region.
func (t *table) erase(slot uint32, r mem.Range) {
	es, n := entries(slot, r, 0)
	for _, e := range es[:n] {
		b := t.loadOf(&e)
		a := t.area(*b.cursor)
		a.remove(a.find(e), b)
	}
	k := class(r.Len())
	if t.byClass[k]--; t.byClass[k] == 0 {
		atomic.StoreUint64(&t.classes, t.classes&^(1<<k))
	}
}

// remove empties place i and moves later entries of the run up, so that no
// run has a gap (Knuth, vol. 3, 6.4, algorithm R).
func (a area) remove(i uint64, b *areaLoad) {
	m := a.mask()
	if b.used--; a.at(i).place(a) != i {
		b.displaced--
	}
	for j := (i + 1) & m; a.at(j).state&slotMask != 0; j = (j + 1) & m {
		if e := *a.at(j); (j-e.place(a))&m >= (j-i)&m {
			if a.at(i).write(e); e.place(a) == i {
				b.displaced--
			}
			i = j
		}
	}
	a.at(i).empty()
}

// larger returns how many places an area has after it has grown: twice as many. But entries
// lie scattered over all pages of an area, and a page costs more than its entries. So areas of
// more than a few pages are made of huge pages.
func (b *areaLoad) larger() uint64 {
	if b.places == 1<<mostSmallPages && b.maxPlaces >= 1<<hugeArea {
		return 1 << hugeArea
	}
	return 2 * b.places
}

// grow moves to a larger area, which follows the old one in memory. Readers go on
// in the old one until its entries are emptied, when they ask the writer or look again.
func (t *table) grow(b *areaLoad) {
	old, oldPlaces := t.area(*b.cursor), b.places
	offset := *b.cursor &^ 63
	b.places, b.used, b.displaced = b.larger(), 0, 0
	// The sizes of areas are powers of two, so those left out lie between.
	offset += (b.places - oldPlaces) << entryShift
	populate(t.mem[offset : offset+b.places<<entryShift])
	next := cursorOf(offset, uint64(65-bits.Len64(b.places)))
	larger := t.area(next)
	for i := range oldPlaces {
		if e := *old.at(i); e.state&slotMask != 0 {
			*larger.claim(e, b) = entry{e.state & (openBit | slotMask), e.low, e.high, e.keys} // nobody reads it yet
		}
	}
	atomic.StoreUint64(b.cursor, next)
	for i := range oldPlaces {
		if e := old.at(i); e.state&slotMask != 0 {
			e.empty()
		}
	}
}

// describe fills the descriptor of a slot; nobody has a reference to it.
func (t *table) describe(slot uint32, id mem.RegionID, reg verbs.Region) {
	d := t.desc(slot)
	storeWord(&d.id, uint64(id))
	d.low, d.high = uint64(reg.Range.Start), uint64(reg.Range.End)
	d.keys, d.handle, d.access = keysOf(reg), reg.Handle, uint32(reg.Access)
}

// retire marks a slot whose last reference must be looked after, or takes the mark away.
func (t *table) retire(slot uint32, on bool) {
	d := t.desc(slot)
	if on {
		atomic.StoreUint32(&d.flags, descRetired)
		atomic.AddUint32(&t.retired, 1)
		return
	}
	atomic.StoreUint32(&d.flags, 0)
	atomic.AddUint32(&t.retired, ^uint32(0))
}

// offer says whether C threads may register the region of a slot, which is not retired, by themselves.
func (t *table) offer(slot uint32, on bool) {
	var flags uint32
	if on {
		flags = descAbsent
	}
	atomic.StoreUint32(&t.desc(slot).flags, flags)
}

// isRetired reports whether the last reference of a slot must be looked after.
func (h *header) isRetired(slot uint32) bool {
	return atomic.LoadUint32(&h.retired) != 0 && atomic.LoadUint32(&h.desc(slot).flags)&descRetired != 0
}

// hasUndone reports whether C code has given up a hit on a retired registration since the last
// forgetUndone.
func (h *header) hasUndone() bool { return atomic.LoadUint32(&h.undone) != 0 }

// forgetUndone must come before the references are read: a hit that is given up later then counts
// for the next time.
func (h *header) forgetUndone() { atomic.StoreUint32(&h.undone, 0) }

func keysOf(reg verbs.Region) uint64 { return uint64(reg.LKey) | uint64(reg.RKey)<<32 }
