//go:build amd64

package vmwatch

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/internal/uffd"
	"pinwheel/mem"
)

const uffdFeatures = uffd.EventRemap | uffd.EventRemove | uffd.EventUnmap | uffd.WPUnpopulated | uffd.WPAsync

// <linux/userfaultfd.h>
const (
	uffdEventRemap  = 0x14
	uffdEventRemove = 0x15
	uffdEventUnmap  = 0x16
)

// uffdMsg is struct uffd_msg: for UNMAP and REMOVE a and b are start and end;
// for REMAP they are from and to, and c the length.
type uffdMsg struct {
	event   uint8
	_       [7]uint8
	a, b, c uint64
}

// scanCall is one PAGEMAP_SCAN with room for its answer. It holds its own
// address as a number, so it must be on the heap, which doesn't move.
type scanCall struct {
	arg    uffd.ScanArg
	answer uffd.PageRegion
}

var scanCalls = sync.Pool{New: func() any { return new(scanCall) }}

// pagesAre reports whether every page of r has all of these properties.
func pagesAre(pagemap uintptr, r mem.Range, properties uint64) bool {
	c := scanCalls.Get().(*scanCall)
	defer scanCalls.Put(c)
	c.arg = uffd.ScanArg{Size: uint64(unsafe.Sizeof(c.arg)), Start: uint64(r.Start), End: uint64(r.End),
		Vec: uint64(uintptr(unsafe.Pointer(&c.answer))), VecLen: 1, Mask: properties, Returned: properties}
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, pagemap, uffd.ScanIoctl, uintptr(unsafe.Pointer(&c.arg)))
	return errno == 0 && n == 1 && c.answer.Start == uint64(r.Start) && c.answer.End == uint64(r.End)
}

// pageFaults counts those of all threads of the process, of both kinds.
// Faults taken inside system calls, as in pinning, count too.
func pageFaults() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return -1
	}
	return u.Minflt + u.Majflt
}
