package mlock

import (
	"syscall"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// kindOf returns the sentinel for an errno of mlock(2) of r. ENOMEM has four meanings: above the
// limit, a hole in the mapping, a page that may not be accessed, too many mappings. EAGAIN means that pages could not
// be brought in.
func kindOf(errno syscall.Errno, r mem.Range, limit int64) error {
	switch errno {
	case syscall.EPERM:
		return verbs.ErrNotPermitted
	case syscall.EINVAL: // the end of r wraps around
		return verbs.ErrNotMapped
	case syscall.EAGAIN:
		return verbs.ErrBusy
	case syscall.ENOMEM:
	default:
		return verbs.Kind(errno)
	}
	// The kernel compares with the limit before it looks at the mapping, and
	// VmLck does not count r then.
	locked, err := verbs.StatusBytes("VmLck")
	switch {
	case !whollyMapped(r):
		return verbs.ErrNotMapped
	case err == nil && int64(r.Len()) > limit-locked:
		return verbs.ErrPinnedMemory
	case populate(r) != 0:
		return verbs.ErrNotMapped
	}
	return verbs.ErrRegions
}

func whollyMapped(r mem.Range) bool {
	mapped := mappedIn(r)
	return mapped.Contains(r)
}
