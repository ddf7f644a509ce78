package main

/*
#include "bind.h"
*/
import "C"

import (
	"errors"
	"math"
	"syscall"
	"unsafe"

	"pinwheel/internal/account"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// provider registers memory in a protection domain of the transport, by the
// libibverbs that the transport uses. It implements verbs.Provider.
type provider struct {
	sh    *C.struct_pw_shared
	pd    unsafe.Pointer
	meter *account.Mean
}

func (p *provider) Name() string { return "rdma" }

// Limits are left to the kernel: the transport itself registers in the same
// process, so what is left cannot be known beforehand. A refusal makes the cache
// evict, and try again.
func (p *provider) Limits() verbs.Limits {
	return verbs.Limits{MaxRegions: math.MaxInt64, MaxRegionBytes: math.MaxInt64, MaxPinnedBytes: mem.Unlimited, PinnedSource: "the kernel"}
}

func (p *provider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	const op = "ibv_reg_mr"
	aligned, err := verbs.Pinnable(op, r)
	if err != nil {
		return verbs.Region{}, err
	}
	mr, err := C.pw_call_reg(p.sh, p.pd, C.uint64_t(aligned.Start), C.size_t(aligned.Len()), C.uint(a))
	if mr == nil {
		return verbs.Region{}, &verbs.Error{Op: op, Range: aligned, Kind: kindOf(errnoOf(err)), Errno: errnoOf(err)}
	}
	p.meter.Change(int64(aligned.Len()))
	keys := (*ibvMR)(mr)
	return verbs.Region{Range: aligned, Access: a, LKey: keys.lkey, RKey: keys.rkey, Handle: uint64(uintptr(mr))}, nil
}

func (p *provider) Deregister(g verbs.Region) error {
	if rc := C.pw_call_dereg(p.sh, *(*unsafe.Pointer)(unsafe.Pointer(&g.Handle))); rc != 0 {
		return verbs.Fail("ibv_dereg_mr", g.Range, syscall.Errno(rc))
	}
	p.meter.Change(-int64(g.Range.Len()))
	return nil
}

// Close does nothing: the protection domain is the transport's.
func (p *provider) Close() error { return nil }

// ibvMR is struct ibv_mr of <infiniband/verbs.h>.
type ibvMR struct {
	_          [3]unsafe.Pointer // context, pd, addr
	_          uint64            // length
	_          uint32            // handle
	lkey, rkey uint32
}

func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) && e != 0 {
		return e
	}
	return syscall.EIO
}

// kindOf reads an errno of ibv_reg_mr(3): ENOMEM is the memlock limit or a
// full device, EAGAIN the limit of the rdma cgroup; evicting helps against each.
func kindOf(e syscall.Errno) error {
	if e == syscall.EAGAIN {
		return verbs.ErrRegions
	}
	return verbs.Kind(e)
}
