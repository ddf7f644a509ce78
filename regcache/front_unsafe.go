package regcache

import (
	"sync/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Front is the way of one thread into the cache: hits through it write only
// memory of its own. It belongs to one goroutine at a time.
type Front struct {
	*counts
	hdr    *header
	c      *Cache
	shared bool // used by many goroutines: counts with atomic read-modify-write
}

// Ref is one counted reference to a registration. The zero value is none. It
// may be copied, but be released once only.
type Ref struct {
	d    *desc
	id   mem.RegionID // of the home if d is another region, else 0
	keys uint64
}

// Valid reports whether r is a reference at all.
func (r Ref) Valid() bool { return r.d != nil }

// ID returns the home of the request, for the helper; zero for a
// registration that is not cached. Valid until r is released.
func (r Ref) ID() mem.RegionID {
	if r.id != 0 {
		return r.id
	}
	return mem.RegionID(r.d.id)
}

// LKey returns the local key of the registration.
func (r Ref) LKey() uint32 { return uint32(r.keys) }

// RKey returns the remote key of the registration.
func (r Ref) RKey() uint32 { return uint32(r.keys >> 32) }

// Region returns the registration that serves the request. Valid until r is released.
func (r Ref) Region() verbs.Region {
	d := r.d
	return verbs.Region{Range: mem.Range{Start: mem.Addr(d.low), End: mem.Addr(d.high)}, Access: verbs.Access(d.access),
		LKey: uint32(d.keys), RKey: uint32(d.keys >> 32), Handle: d.handle}
}

// hit looks for a registration of the whole pages of r without a lock.
func (f *Front) hit(r mem.Range, want uint64) (Ref, bool) {
	h := f.hdr
	m := h.pageMask
	lo, hi := uint64(r.Start)&^m, (uint64(r.End)+m)&^m
	if r.End <= r.Start || hi == 0 || atomic.LoadUint64(h.gen) != atomic.LoadUint64(&h.seen) {
		return Ref{}, false
	}
	a := h.area(atomic.LoadUint64(&h.cursor))
	for i := a.place(lo >> (class(hi-lo) & 63)); ; i = (i + 1) & a.mask() {
		e := a.at(i)
		s := atomic.LoadUint64(&e.state)
		low := atomic.LoadUint64(&e.low)
		if low&^m == lo && e.high&^secondBit == hi && lacks(low, want) == 0 && s&openBit != 0 {
			return f.take(e, s)
		}
		if s&slotMask == 0 {
			return f.hitContained(lo, hi, want)
		}
	}
}

// take counts a reference to the region of an open entry, if it still is open.
func (f *Front) take(e *entry, s uint64) (Ref, bool) {
	slot := uint32(s&slotMask) - 1
	f.count(slot, 1)
	if atomic.LoadUint64(&e.state) != s {
		f.count(slot, countMask)
		return Ref{}, false
	}
	if f.shared {
		atomic.AddUint64(&f.hits, 1)
	} else {
		f.hits++
	}
	return Ref{d: f.hdr.desc(slot), keys: atomic.LoadUint64(&e.keys)}, true
}

// count adds n, modulo 2^24, to the references of a slot, and notes the use.
func (f *Front) count(slot uint32, n uint64) {
	w := f.word(slot)
	epoch := atomic.LoadUint64(&f.hdr.epoch) << countBits
	switch {
	case f.shared:
		for v := atomic.LoadUint64(w); !atomic.CompareAndSwapUint64(w, v, epoch|(v+n)&countMask); {
			v = atomic.LoadUint64(w)
		}
	case f.hdr.flags&flagFenced != 0:
		atomic.StoreUint64(w, epoch|(*w+n)&countMask)
	default:
		storeWord(w, epoch|(*w+n)&countMask)
	}
}

// hitContained looks for a region that is longer than the request: for its
// home, the smallest of at most twice the length, and, if that is not
// registered, for any other that covers it.
func (f *Front) hitContained(lo, hi, want uint64) (Ref, bool) {
	h := f.hdr
	a := h.area(atomic.LoadUint64(&h.cursor))
	n := hi - lo
	k := class(n)
	var home *entry
	var state, start, length uint64
	for last := k + 1; k <= last && home == nil; k++ {
		for i := a.place(lo >> (k & 63)); ; i = (i + 1) & a.mask() {
			e := a.at(i)
			s := atomic.LoadUint64(&e.state)
			if s&slotMask == 0 {
				break
			}
			low, high := atomic.LoadUint64(&e.low), atomic.LoadUint64(&e.high)&^secondBit
			from := low &^ h.pageMask
			if from > lo || high < hi || high-from > 2*n || lacks(low, want) != 0 {
				continue
			}
			if home == nil || high-from < length || high-from == length && from < start {
				home, state, start, length = e, s, from, high-from
			}
		}
	}
	if home == nil {
		return Ref{}, false // the home has to be added or grown
	}
	if state&openBit != 0 {
		return f.take(home, state)
	}
	slot := uint32(state&slotMask) - 1
	id := mem.RegionID(atomic.LoadUint64(&h.desc(slot).id))
	if atomic.LoadUint64(&home.state) != state {
		return Ref{}, false
	}
	ref, ok := f.hitAny(a, lo, hi, want)
	ref.id = id
	return ref, ok
}

// hitAny takes the first open region that covers the request.
func (f *Front) hitAny(a area, lo, hi, want uint64) (Ref, bool) {
	k := class(hi - lo)
	for classes := atomic.LoadUint64(&f.hdr.classes) >> (k & 63); classes != 0; classes, k = classes>>1, k+1 {
		if classes&1 == 0 {
			continue
		}
		for i := a.place(lo >> (k & 63)); ; i = (i + 1) & a.mask() {
			e := a.at(i)
			s := atomic.LoadUint64(&e.state)
			if s&slotMask == 0 {
				break
			}
			low, high := atomic.LoadUint64(&e.low), atomic.LoadUint64(&e.high)&^secondBit
			if s&openBit != 0 && low&^f.hdr.pageMask <= lo && hi <= high && lacks(low, want) == 0 {
				return f.take(e, s)
			}
		}
	}
	return Ref{}, false
}

// drop ends a reference and reports whether its registration wants to be looked after.
func (f *Front) drop(r Ref) (slot uint32, retired bool) {
	slot = f.hdr.slotOf(r.d)
	f.count(slot, countMask)
	return slot, atomic.LoadUint32(&f.hdr.retired) != 0 && atomic.LoadUint32(&r.d.flags)&descRetired != 0
}

// describe fills the descriptor of a slot; nobody has a reference to it.
func (t *table) describe(slot uint32, id mem.RegionID, reg verbs.Region) {
	d := t.desc(slot)
	atomic.StoreUint64(&d.id, uint64(id))
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

func keysOf(reg verbs.Region) uint64 { return uint64(reg.LKey) | uint64(reg.RKey)<<32 }
