package regcache

import (
	"sync/atomic"
	"unsafe"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Local is one thread's access to a cache: hits through it write only memory of its own. It
// belongs to one goroutine at a time.
type Local struct {
	*counts
	hdr      *header
	pageMask uint64
	c        *Cache
	shared   bool // counts with atomic read-modify-write: used by many goroutines, or there is no membarrier
}

func (c *Cache) newLocal(shared bool) (*Local, error) {
	words, err := c.tab.addLocal()
	if err != nil {
		return nil, err
	}
	shared = shared || c.tab.flags&flagFenced != 0
	return &Local{counts: words, hdr: c.tab.header, pageMask: c.tab.pageMask, c: c, shared: shared}, nil
}

// Ref is one counted reference to a registration; the zero value is no reference. A Ref may be
// copied, but only one copy may be released. In memory it is a struct pwt_ref.
type Ref struct {
	d    *desc
	id   mem.RegionID // the request's region if d is another one, else 0
	keys uint64
}

// Valid reports whether r is a reference, and not the zero value.
func (r Ref) Valid() bool { return r.d != nil }

// ID returns the request's region, for the helper; zero for a registration
// that is not cached. Valid until r is released.
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
	return r.d.registration()
}

// registration is what the slot of d holds.
func (d *desc) registration() verbs.Region {
	return verbs.Region{Range: mem.Range{Start: mem.Addr(d.low), End: mem.Addr(d.high)}, Access: verbs.Access(d.access),
		LKey: uint32(d.keys), RKey: uint32(d.keys >> 32), Handle: d.handle}
}

// Acquire returns a counted reference to a registration that covers r with the rights a, and
// registers memory if there is none. A hit takes no lock. Acquire fails with the provider's
// errors, with verbs.ErrPinnedMemory or verbs.ErrRegions if the regions in use leave no room
// below the limit, with mem.ErrEmpty or mem.ErrOverflow for a range that no provider can
// register, and with ErrClosed and ErrFault.
//
// For a request whose pages are exactly those of a region, a hit is this
// function alone and reads one entry.
func (l *Local) Acquire(r mem.Range, a verbs.Access) (Ref, Outcome, error) {
	h, m := l.hdr, l.pageMask
	lo, hi := uint64(r.Start)&^m, (uint64(r.End)+m)&^m
	want := packAccess(a)
	if r.End <= r.Start || l.shared || !h.current() {
		return l.acquireOther(r, a)
	}
	in := h.area(atomic.LoadUint64(&h.exact))
	i := in.placeExact(lo, hi)
	e := in.at(i)
	s := atomic.LoadUint64(&e.state)
	for e.mismatch(s, lo, hi, m, want) != 0 {
		if s&slotMask == 0 {
			return l.acquireOther(r, a)
		}
		i = (i + 1) & in.mask()
		e = in.at(i)
		s = atomic.LoadUint64(&e.state)
	}
	keys := loadWord(&e.keys) // once the state was looked at again, the place may be another's
	w := l.word(uint32(s&slotMask) - 1)
	storeWord(w, atomic.LoadUint64(&h.epoch)<<countBits|(loadWord(w)+1)&countMask)
	if atomic.LoadUint64(&e.state) != s {
		l.undo(uint32(s&slotMask) - 1)
		return l.acquireOther(r, a)
	}
	storeWord(&l.hits, loadWord(&l.hits)+1)
	return Ref{d: h.desc(uint32(s&slotMask) - 1), keys: keys}, Hit, nil
}

// Release drops a reference, which any other Local may have taken.
func (l *Local) Release(r Ref) {
	h := l.hdr
	slot := h.slotOf(r.d)
	if l.shared {
		l.count(slot, countMask)
	} else {
		w := l.word(slot)
		storeWord(w, atomic.LoadUint64(&h.epoch)<<countBits|(loadWord(w)-1)&countMask)
	}
	if atomic.LoadUint32(&h.retired) != 0 && atomic.LoadUint32(&r.d.flags)&descRetired != 0 {
		l.c.reclaimSlot(slot)
	}
}

// undo takes back a count whose entry was closed meanwhile. The count may have kept
// the last user of a retired registration from releasing it, be it the registration that was
// meant or a later one in the same slot: then it is released here.
func (l *Local) undo(slot uint32) {
	l.count(slot, countMask)
	if l.hdr.isRetired(slot) {
		l.c.reclaimSlot(slot)
	}
}

// Cache returns the cache that the Local belongs to.
func (l *Local) Cache() *Cache { return l.c }

// Memory returns the Local's struct pwt_local of table.h, for C code that hits by itself. That
// C code's thread then owns the Local.
func (l *Local) Memory() unsafe.Pointer { return unsafe.Pointer(l.counts) }

// Dropped ends a Release that C code has begun: it must be called if pwt_put returned 1 for r.
func (l *Local) Dropped(r Ref) { l.c.reclaimSlot(l.hdr.slotOf(r.d)) }

// acquireOther serves requests that are not for exactly the pages of a
// registered region: contained ones without a lock, others with.
func (l *Local) acquireOther(r mem.Range, a verbs.Access) (Ref, Outcome, error) {
	if ref, ok := l.hit(r, packAccess(a)); ok {
		return ref, Hit, nil
	}
	return l.c.acquire(l, r, a)
}

// hit looks for a registration of the whole pages of r without a lock.
func (l *Local) hit(r mem.Range, want uint64) (Ref, bool) {
	h, m := l.hdr, l.pageMask
	lo, hi := uint64(r.Start)&^m, (uint64(r.End)+m)&^m
	if r.End <= r.Start || hi == 0 || !h.current() {
		return Ref{}, false
	}
	if h.flags&flagAnyCovering != 0 {
		return l.hitCovering(lo, hi, want)
	}
	fit, state := l.find(lo, hi, want, false)
	if fit == nil {
		return Ref{}, false // it has to be added or grown
	}
	if state&openBit != 0 {
		return l.take(fit, state)
	}
	id := mem.RegionID(atomic.LoadUint64(&h.desc(uint32(state&slotMask) - 1).id))
	if atomic.LoadUint64(&fit.state) != state {
		return Ref{}, false
	}
	ref, ok := l.hitCovering(lo, hi, want)
	ref.id = id
	return ref, ok
}

// take counts a reference to the region of an open entry, if it still is open.
func (l *Local) take(e *entry, s uint64) (Ref, bool) {
	slot := uint32(s&slotMask) - 1
	keys := loadWord(&e.keys)
	l.count(slot, 1)
	if atomic.LoadUint64(&e.state) != s {
		l.undo(slot)
		return Ref{}, false
	}
	if l.shared {
		atomic.AddUint64(&l.hits, 1)
	} else {
		storeWord(&l.hits, loadWord(&l.hits)+1)
	}
	return Ref{d: l.hdr.desc(slot), keys: keys}, true
}

// count adds n, modulo 2^24, to the references of a slot, and notes the use.
func (l *Local) count(slot uint32, n uint64) {
	w := l.word(slot)
	epoch := atomic.LoadUint64(&l.hdr.epoch) << countBits
	if !l.shared {
		storeWord(w, epoch|(loadWord(w)+n)&countMask)
		return
	}
	for v := atomic.LoadUint64(w); !atomic.CompareAndSwapUint64(w, v, epoch|(v+n)&countMask); {
		v = atomic.LoadUint64(w)
	}
}

// find finds the entry of a region that contains a request: with anyOpen the first open one, and else, open or not, the
// best fit of doc.go.
func (l *Local) find(lo, hi, want uint64, anyOpen bool) (fit *entry, state uint64) {
	a := l.hdr.area(atomic.LoadUint64(&l.hdr.granules))
	n := hi - lo
	var start, length uint64
	k := class(n)
	classes := atomic.LoadUint64(&l.hdr.classes) >> (k & 63)
	if !anyOpen {
		classes &= 3
	}
	for ; classes != 0 && fit == nil; classes, k = classes>>1, k+1 {
		if classes&1 == 0 {
			continue
		}
		longest := min(2*n, 1<<(k&63)) // longer regions lie on the way by chance
		for i := a.place(lo >> (k & 63)); ; i = (i + 1) & a.mask() {
			e := a.at(i)
			s := atomic.LoadUint64(&e.state)
			if s&slotMask == 0 {
				break
			}
			low, high := loadWord(&e.low), loadWord(&e.high)&^whichMask
			from := low &^ l.pageMask
			if from > lo || high < hi || lacks(low, want) != 0 {
				continue
			}
			if anyOpen {
				if s&openBit != 0 {
					return e, s
				}
				continue
			}
			if high-from <= longest && (fit == nil || high-from < length || high-from == length && from < start) {
				fit, state, start, length = e, s, from, high-from
			}
		}
	}
	return fit, state
}

// hitCovering takes the first open region that covers the request.
func (l *Local) hitCovering(lo, hi, want uint64) (Ref, bool) {
	e, state := l.find(lo, hi, want, true)
	if e == nil {
		return Ref{}, false
	}
	return l.take(e, state)
}
