// Package ctable lets C threads of this process use a regcache.Cache. They hit through the
// inline functions of regcache/table.h, and call Go for everything else. It serves the C rows
// of `make bench-peers`, and the tests of table.h, which also run under ThreadSanitizer and
// AddressSanitizer.
//
// C code knows a cache by the number of its cgo.Handle.
package ctable

/*
#include "ctable.h"
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

//export ct_open
func ct_open(cache C.uintptr_t, t *C.struct_ct_thread) C.int {
	local, err := cgo.Handle(cache).Value().(*regcache.Cache).Thread()
	if err != nil {
		return -1
	}
	t.local = (*C.struct_pwt_local)(local.Memory())
	t._go = C.uintptr_t(cgo.NewHandle(local))
	return 0
}

//export ct_close
func ct_close(t *C.struct_ct_thread) {
	localOf(t._go).Close()
	cgo.Handle(t._go).Delete()
}

//export ct_invalidate
func ct_invalidate(cache C.uintptr_t, addr unsafe.Pointer, n C.size_t) C.int {
	if err := cgo.Handle(cache).Value().(*regcache.Cache).Invalidate(rangeOf(addr, n)); err != nil {
		return -1
	}
	return 0
}

//export ct_get_slow
func ct_get_slow(local C.uintptr_t, addr unsafe.Pointer, n C.size_t, access C.uint32_t, ref *C.struct_pwt_ref) C.int {
	r, outcome, err := localOf(local).AcquireMissed(rangeOf(addr, n), verbs.Access(access))
	if err != nil {
		return -1
	}
	*goRef(ref) = r
	return C.int(outcome)
}

//export ct_is_registered_slow
func ct_is_registered_slow(
	local C.uintptr_t, addr unsafe.Pointer, n C.size_t, access C.uint32_t, ref *C.struct_pwt_ref,
) C.int {
	l := localOf(local)
	l.Cache().Sweep()
	r, ok := l.IsRegistered(rangeOf(addr, n), verbs.Access(access))
	if !ok {
		return 0
	}
	*goRef(ref) = r
	return 1
}

//export ct_put_slow
func ct_put_slow(local C.uintptr_t, ref *C.struct_pwt_ref) { localOf(local).Dropped(*goRef(ref)) }

func localOf(h C.uintptr_t) *regcache.Local { return cgo.Handle(h).Value().(*regcache.Local) }

// goRef is the same reference as Go sees it.
func goRef(ref *C.struct_pwt_ref) *regcache.Ref { return (*regcache.Ref)(unsafe.Pointer(ref)) }

func rangeOf(addr unsafe.Pointer, n C.size_t) mem.Range {
	start := mem.Addr(uintptr(addr))
	return mem.Range{Start: start, End: start + mem.Addr(n)}
}
