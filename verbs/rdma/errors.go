//go:build linux && cgo

package rdma

import (
	"errors"
	"syscall"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/memlock"
)

// failure types a failed registration. What the shortage was is only asked
// after a failure, so the answer is that of a moment later.
func (p *Provider) failure(op string, r mem.Range, errno syscall.Errno) error {
	limit, _ := memlock.Limit()
	pinned, err := verbs.StatusBytes("VmPin")
	if err != nil {
		pinned = p.pinned.Load() // nobody else has pinned anything, presumably
	}
	kind := kindOf(errno, situation{
		limitBytes:  limit,
		pinnedBytes: pinned,
		askedBytes:  int64(r.Len()),
		regions:     p.count.Load(),
		maxRegions:  p.lim.MaxRegions,
	})
	return &verbs.Error{Op: op, Range: r, Kind: kind, Errno: errno}
}

// situation is what an errno of ibv_reg_mr has to be read in the light of.
type situation struct {
	limitBytes  int64 // what may be pinned
	pinnedBytes int64 // what this process had pinned, through all of its providers
	askedBytes  int64
	regions     int64 // of this provider
	maxRegions  int64 // of the device
}

// kindOf translates an errno of ibv_reg_mr.
//
//   - ENOMEM is both the memlock limit (ib_umem_get) and a device out of keys
//     or translation entries.
//   - EPERM is a memlock limit of zero (can_do_mlock), besides what it is elsewhere.
//   - EAGAIN is the limit of the rdma cgroup controller (ib_rdmacg_try_charge).
//   - EINVAL is what rdma_rxe says when its table of regions is full.
func kindOf(errno syscall.Errno, s situation) error {
	switch errno {
	case syscall.ENOMEM:
		if s.pinnedBytes+s.askedBytes > s.limitBytes && s.limitBytes != mem.Unlimited {
			return verbs.ErrPinnedMemory
		}
		return verbs.ErrRegions
	case syscall.EPERM:
		if s.limitBytes == 0 {
			return verbs.ErrPinnedMemory
		}
	case syscall.EAGAIN:
		return verbs.ErrRegions
	case syscall.EINVAL:
		if s.regions >= s.maxRegions {
			return verbs.ErrRegions
		}
	}
	return verbs.Kind(errno)
}

// errnoOf returns the errno that package ibv failed with.
func errnoOf(err error) syscall.Errno {
	var e syscall.Errno
	if errors.As(err, &e) {
		return e
	}
	return syscall.EIO
}
