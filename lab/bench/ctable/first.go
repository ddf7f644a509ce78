package ctable

/*
#include "first.h"
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Thread lets a test do step by step what a C thread does.
type Thread struct{ t C.struct_ct_thread }

// OpenThread gives the thread its way into a cache.
func OpenThread(cache cgo.Handle) *Thread {
	t := new(Thread)
	if C.ct_open(C.uintptr_t(cache), &t.t) != 0 {
		return nil
	}
	return t
}

// Close ends it.
func (t *Thread) Close() { C.ct_close(&t.t) }

// Grant is one that a Thread has taken.
type Grant struct{ f *C.struct_pwt_grant }

// Take takes a grant for whole pages. It returns false if the slow path has to look.
func (t *Thread) Take(r mem.Range) (Grant, bool) {
	f := C.ct_take(&t.t, (*C.char)(addr(uintptr(r.Start))), C.size_t(r.Len()))
	return Grant{f}, f != nil
}

// Range returns what is to be registered: the pages that were asked for, or those of the known region.
func (g Grant) Range() mem.Range {
	return mem.Range{Start: mem.Addr(g.f.low), End: mem.Addr(g.f.high)}
}

// Ref is a counted reference.
type Ref struct{ ref C.struct_pwt_ref }

// ID returns the region, as C tells the helper.
func (r Ref) ID() mem.RegionID { return mem.RegionID(r.ref.desc.id) }

// Made says that the range is registered under a handle.
func (t *Thread) Made(f Grant, handle uint64) Ref {
	return Ref{C.ct_made(&t.t, f.f, C.uint64_t(handle))}
}

// Failed says that the range could not be registered.
func (t *Thread) Failed(f Grant) { C.ct_failed(&t.t, f.f) }

// Hit gets a reference from the table.
func (t *Thread) Hit(r mem.Range) (ref Ref, ok bool) {
	ok = C.ct_hit(&t.t, (*C.char)(addr(uintptr(r.Start))), C.size_t(r.Len()), &ref.ref) != 0
	return ref, ok
}

// Drop drops a reference.
func (t *Thread) Drop(r Ref) { C.ct_drop(&t.t, r.ref) }

// registrars are what C threads register first uses with, by the cache's handle.
var registrars = map[cgo.Handle]verbs.Provider{}

//export ct_register
func ct_register(cache C.uintptr_t, addr unsafe.Pointer, n C.size_t) C.uint64_t {
	g, err := registrars[cgo.Handle(cache)].Register(rangeOf(addr, n), verbs.AccessLocalWrite)
	if err != nil {
		return 0
	}
	return C.uint64_t(g.Handle)
}

// Firsts are the results of First.
type Firsts struct {
	Result
	First uint64 // uses that a thread has registered by itself
	Old   uint64 // references to a registration older than a change that preceded the request
}

// First has C threads use random ranges, of which they register first uses by themselves with p.
func First(r Run, p verbs.Provider, v *uint32) Firsts {
	registrars[r.Cache] = p
	defer delete(registrars, r.Cache)
	got := C.ct_first(r.c(), (*C.struct_ct_versions)(unsafe.Pointer(v)))
	return Firsts{Result: r.result(got.got), First: uint64(got.first), Old: uint64(got.old)}
}
