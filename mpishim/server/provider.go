package main

/*
#include "bind.h"
*/
import "C"

import (
	"syscall"
	"unsafe"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// provider registers memory in a protection domain of the transport, through the
// libibverbs that the transport uses or through its callbacks. It implements
// verbs.Provider.
type provider struct {
	sh *C.struct_pw_shared
	pd unsafe.Pointer
}

func (p *provider) Name() string { return "rdma" }

// Limits leaves limits to the kernel: the transport registers in the same process,
// so nobody knows beforehand how much room there is. When the kernel refuses, the
// cache evicts and tries again. Only requests longer than this machine's memory,
// which can't be pinned, go to the transport, which knows what they mean.
func (p *provider) Limits() verbs.Limits {
	return verbs.Limits{
		MaxRegions: mem.Unlimited, MaxRegionBytes: verbs.PhysicalBytes(),
		MaxPinnedBytes: mem.Unlimited, PinnedSource: "the kernel",
	}
}

func (p *provider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	const op = "registration"
	aligned, err := verbs.WholePages(op, r)
	if err != nil {
		return verbs.Region{}, err
	}
	made := C.pw_register(p.sh, p.pd, C.uint64_t(aligned.Start), C.size_t(aligned.Len()), C.uint(a))
	if errno := syscall.Errno(made.error); errno != 0 {
		return verbs.Region{}, &verbs.Error{Op: op, Range: aligned, Kind: kindOf(errno), Errno: errno}
	}
	return verbs.Region{
		Range: aligned, Access: a, LKey: uint32(made.region.lkey), RKey: uint32(made.region.rkey),
		Handle: uint64(uintptr(made.region.handle)),
	}, nil
}

func (p *provider) Deregister(g verbs.Region) error {
	if rc := C.pw_deregister(p.sh, p.pd, C.uint64_t(g.Handle)); rc != 0 {
		return verbs.Fail("deregistration", g.Range, syscall.Errno(rc))
	}
	return nil
}

// Close does nothing: the protection domain is the transport's.
func (p *provider) Close() error { return nil }

// kindOf classifies an errno of ibv_reg_mr(3): ENOMEM means the memlock limit or a full device, EAGAIN the
// limit of the rdma cgroup. Eviction helps against each.
func kindOf(e syscall.Errno) error {
	if e == syscall.EAGAIN {
		return verbs.ErrRegions
	}
	return verbs.Kind(e)
}
