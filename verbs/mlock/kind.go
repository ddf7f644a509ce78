package mlock

import (
	"syscall"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// kindOf tells the meanings of mlock's errno for r apart. ENOMEM has four:
// over the limit, a hole in the mapping, a page that may not be accessed, too
// many mappings. EAGAIN means that pages could not be brought in.
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
	for _, part := range mappedParts(r) {
		if part.Start != r.Start {
			return false
		}
		r.Start = part.End
	}
	return r.Empty()
}
