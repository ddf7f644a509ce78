// Package ctest runs C threads against a cache, for tests of package cfront.
package ctest

/*
#include "ctest.h"
*/
import "C"

import (
	"unsafe"

	// cfront has the other half of the C API.
	_ "pinwheel/regcache/cfront"
)

// Run says what the C threads do: get and put random ranges of Pages pages
// from Base. Alive is a word per handle, outside the Go heap, that is not zero
// while the provider holds the registration.
type Run struct {
	Cache      uint64
	Base       uintptr
	Pages      int
	Alive      *uint32
	Threads    int
	Iterations int
}

// Result counts outcomes by regcache.Outcome, refused requests, references to
// registrations that were gone, and to such that did not cover the request.
type Result struct {
	Outcomes             [4]uint64
	Failed, Stale, Wrong uint64
}

// Stress runs the threads to their end.
func Stress(r Run) Result { return r.result(C.ctest_stress(r.c())) }

// Race has the threads hit what the others invalidate, Iterations times each.
func Race(r Run) Result { return r.result(C.ctest_race(r.c())) }

func (r Run) c() C.struct_ctest_run {
	return C.struct_ctest_run{
		cache: C.pwc_cache(r.Cache), base: (*C.char)(addr(r.Base)), pages: C.unsigned(r.Pages),
		alive: (*C.uint32_t)(unsafe.Pointer(r.Alive)), threads: C.int(r.Threads), iterations: C.ulong(r.Iterations)}
}

func (Run) result(got C.struct_ctest_result) Result {
	res := Result{Failed: uint64(got.failed), Stale: uint64(got.stale), Wrong: uint64(got.wrong)}
	for i := range res.Outcomes {
		res.Outcomes[i] = uint64(got.outcomes[i])
	}
	return res
}

// Pipeline sends a buffer by the pipelined protocol of the 2009 proposal and
// returns the number of posts.
func Pipeline(cache uint64, base uintptr, bytes, piece int) int {
	return int(C.ctest_pipeline(C.pwc_cache(cache), (*C.char)(addr(base)), C.size_t(bytes), C.size_t(piece)))
}

// GiveUp hits the page at base, and gives the hit up after the page was
// invalidated.
func GiveUp(cache uint64, base uintptr) bool {
	return C.ctest_give_up(C.pwc_cache(cache), (*C.char)(addr(base))) == 0
}

// addr makes a pointer of an address that is not of Go memory.
func addr(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }
