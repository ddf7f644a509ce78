package cfront

/*
#include "cfront.h"
*/
import "C"

import (
	"errors"
	"math"
	"runtime/cgo"
	"sync"
	"syscall"
	"unsafe"

	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// Export makes c known to C: the result is a pwc_cache.
func Export(c *regcache.Cache) uint64 { return uint64(cgo.NewHandle(c)) }

// Unexport ends that. No C thread may use the cache any more.
func Unexport(handle uint64) { cgo.Handle(handle).Delete() }

func cacheOf(handle C.pwc_cache) *regcache.Cache {
	return cgo.Handle(handle).Value().(*regcache.Cache)
}

// fronts finds the Front of a struct pwt_front.
var fronts sync.Map // unsafe.Pointer -> *regcache.Front

func frontOf(f *C.struct_pwt_front) *regcache.Front {
	v, _ := fronts.Load(unsafe.Pointer(f))
	return v.(*regcache.Front)
}

// missed returns the Front of a request that was no hit.
func missed(f *C.struct_pwt_front) *regcache.Front {
	front := frontOf(f)
	front.Cache().Sweep()
	return front
}

//export pwc_front_open
func pwc_front_open(cache C.pwc_cache) *C.struct_pwt_front {
	f, err := cacheOf(cache).Thread()
	if err != nil {
		return nil
	}
	fronts.Store(f.Memory(), f)
	return (*C.struct_pwt_front)(f.Memory())
}

//export pwc_front_close
func pwc_front_close(f *C.struct_pwt_front) {
	v, ok := fronts.LoadAndDelete(unsafe.Pointer(f))
	if ok {
		v.(*regcache.Front).Close()
	}
}

//export pwc_get_slow
func pwc_get_slow(f *C.struct_pwt_front, addr unsafe.Pointer, n C.size_t, access C.uint32_t, ref *C.struct_pwt_ref) C.int {
	r, outcome, err := missed(f).Acquire(rangeOf(addr, n), verbs.Access(access))
	if err != nil {
		return fail(err)
	}
	*goRef(ref) = r
	return C.int(outcome)
}

//export pwc_get_uncached
func pwc_get_uncached(f *C.struct_pwt_front, addr unsafe.Pointer, n C.size_t, access C.uint32_t, ref *C.struct_pwt_ref) C.int {
	r, outcome, err := frontOf(f).Register(rangeOf(addr, n), verbs.Access(access))
	if err != nil {
		return fail(err)
	}
	*goRef(ref) = r
	return C.int(outcome)
}

//export pwc_put_slow
func pwc_put_slow(f *C.struct_pwt_front, ref *C.struct_pwt_ref) {
	frontOf(f).Dropped(*goRef(ref))
}

//export pwc_is_registered_slow
func pwc_is_registered_slow(f *C.struct_pwt_front, addr unsafe.Pointer, n C.size_t, access C.uint32_t, ref *C.struct_pwt_ref) C.int {
	r, ok := missed(f).IsRegistered(rangeOf(addr, n), verbs.Access(access))
	if !ok {
		return 0
	}
	*goRef(ref) = r
	return 1
}

//export pwc_limits
func pwc_limits(cache C.pwc_cache, bytes, regions C.uint64_t) C.int {
	l := regcache.Limits{Bytes: int64(min(bytes, math.MaxInt64)), Regions: int64(min(regions, math.MaxInt64))}
	return fail(cacheOf(cache).SetLimits(l))
}

//export pwc_clean
func pwc_clean(cache C.pwc_cache) C.int {
	n, err := cacheOf(cache).Clean()
	if err != nil {
		return fail(err)
	}
	return C.int(n)
}

//export pwc_invalidate
func pwc_invalidate(cache C.pwc_cache, addr unsafe.Pointer, n C.size_t) C.int {
	return fail(cacheOf(cache).Invalidate(rangeOf(addr, n)))
}

//export pwc_register_region
func pwc_register_region(cache C.pwc_cache, id C.uint64_t) C.int {
	return fail(cacheOf(cache).Register(mem.RegionID(id)))
}

//export pwc_deregister_region
func pwc_deregister_region(cache C.pwc_cache, id C.uint64_t) C.int {
	return fail(cacheOf(cache).Deregister(mem.RegionID(id)))
}

func rangeOf(addr unsafe.Pointer, n C.size_t) mem.Range {
	start := mem.Addr(uintptr(addr))
	return mem.Range{Start: start, End: start + mem.Addr(n)}
}

// goRef is the same reference as Go sees it.
func goRef(ref *C.struct_pwt_ref) *regcache.Ref { return (*regcache.Ref)(unsafe.Pointer(ref)) }

var errnos = []struct {
	err   error
	errno syscall.Errno
}{
	{verbs.ErrPinnedMemory, syscall.ENOMEM},
	{verbs.ErrRegions, syscall.ENOSPC},
	{verbs.ErrNotMapped, syscall.EFAULT},
	{verbs.ErrNotPermitted, syscall.EPERM},
	{verbs.ErrBusy, syscall.EAGAIN},
	{verbs.ErrRegionSize, syscall.EINVAL},
	{mem.ErrEmpty, syscall.EINVAL},
	{mem.ErrOverflow, syscall.EINVAL},
	{regcache.ErrInUse, syscall.EBUSY},
	{regcache.ErrUnknown, syscall.ENOENT},
	{regcache.ErrClosed, syscall.ESHUTDOWN},
}

// fail returns the negative errno of an error, 0 for none.
func fail(err error) C.int {
	if err == nil {
		return 0
	}
	for _, e := range errnos {
		if errors.Is(err, e.err) {
			return -C.int(e.errno)
		}
	}
	return -C.int(syscall.EIO)
}
