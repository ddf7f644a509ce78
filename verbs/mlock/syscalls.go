package mlock

import (
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/internal/machine"
	"pinwheel/mem"
)

// lock makes r resident and keeps it so; see mlock(2). It faults in what was
// never touched.
func lock(r mem.Range) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_MLOCK, uintptr(r.Start), uintptr(r.Len()), 0)
	return errno
}

// unlock undoes lock for the part of r that is still mapped. The rest lost its lock with its
// mapping. munlock(2) stops at the first page that is not mapped.
func unlock(r mem.Range) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_MUNLOCK, uintptr(r.Start), uintptr(r.Len()), 0)
	if errno != unix.ENOMEM || whollyMapped(r) {
		return errno
	}
	mapped := mappedIn(r)
	for part := range mapped.All() {
		_, _, errno := unix.Syscall(unix.SYS_MUNLOCK, uintptr(part.Start), uintptr(part.Len()), 0)
		if errno != 0 && whollyMapped(part) { // else another thread has just unmapped it
			return errno
		}
	}
	return 0
}

// mappedIn returns the part of r that is mapped at this moment, and all of r if that can't be
// read.
func mappedIn(r mem.Range) (mapped mem.Set) {
	all, err := machine.Mappings()
	if err != nil {
		return mem.NewSet(r)
	}
	for _, m := range all {
		mapped.Add(mem.Range{Start: max(m.Range.Start, r.Start), End: min(m.Range.End, r.End)})
	}
	return mapped
}

// populate faults r in for reading, without locking it; see MADV_POPULATE_READ
// in madvise(2), Linux 5.14. It fails for a page that can't be read.
func populate(r mem.Range) syscall.Errno {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(r.Start), uintptr(r.Len()), unix.MADV_POPULATE_READ)
	return errno
}
