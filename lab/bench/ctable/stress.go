package ctable

/*
#include "stress.h"
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

// Run says what the C threads do: get and put random ranges of Pages pages
// from Base. Alive is a word per handle, outside the Go heap, that is not zero
// while the provider holds the registration.
type Run struct {
	Cache      cgo.Handle
	Base       uintptr
	Pages      int
	Alive      *uint32
	Threads    int
	Iterations int
	Seconds    int // after which First ends at the latest; the others run to their end
}

// Result counts outcomes by regcache.Outcome, refused requests, references to
// registrations that were gone, and to such that did not cover the request.
type Result struct {
	Outcomes             [4]uint64
	Failed, Stale, Wrong uint64
}

// Stress runs the threads to their end.
func Stress(r Run) Result { return r.result(C.ct_stress(r.c())) }

// Race has the threads hit what the others invalidate, Iterations times each.
func Race(r Run) Result { return r.result(C.ct_race(r.c())) }

func (r Run) c() C.struct_ct_run {
	return C.struct_ct_run{
		cache: C.uintptr_t(r.Cache), base: (*C.char)(addr(r.Base)), pages: C.unsigned(r.Pages),
		alive: (*C.uint32_t)(unsafe.Pointer(r.Alive)), threads: C.int(r.Threads), iterations: C.ulong(r.Iterations),
		seconds: C.unsigned(r.Seconds)}
}

func (Run) result(got C.struct_ct_result) Result {
	res := Result{Failed: uint64(got.failed), Stale: uint64(got.stale), Wrong: uint64(got.wrong)}
	for i := range res.Outcomes {
		res.Outcomes[i] = uint64(got.outcomes[i])
	}
	return res
}

// Pipeline sends a buffer by the pipelined protocol of the 2009 proposal and
// returns the number of posts.
func Pipeline(cache cgo.Handle, base uintptr, bytes, piece int) int {
	return int(C.ct_pipeline(C.uintptr_t(cache), (*C.char)(addr(base)), C.size_t(bytes), C.size_t(piece)))
}

// GiveUp hits the page at base, and gives the hit up after the page was
// invalidated.
func GiveUp(cache cgo.Handle, base uintptr) bool {
	return C.ct_give_up(C.uintptr_t(cache), (*C.char)(addr(base))) == 0
}

// addr makes a pointer of an address that is not of Go memory.
func addr(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }
