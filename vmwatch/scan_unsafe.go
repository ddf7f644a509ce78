package vmwatch

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/internal/uffd"
	"pinwheel/mem"
)

// scanCall is one PAGEMAP_SCAN with room for its answer. It holds its own
// address as a number, so it must be on the heap, which doesn't move.
type scanCall struct {
	arg    uffd.ScanArg
	answer uffd.PageRegion
}

var scanCalls = sync.Pool{New: func() any { return new(scanCall) }}

// scan reports whether every page of r has all of some properties, and one of others if there are any. It fails
// where the kernel has no PAGEMAP_SCAN (before Linux 6.7).
func (p *pageReader) scan(r mem.Range, all, oneOf uint64) (bool, error) {
	c := scanCalls.Get().(*scanCall)
	defer scanCalls.Put(c)
	c.arg = uffd.ScanArg{Size: uint64(unsafe.Sizeof(c.arg)), Start: uint64(r.Start), End: uint64(r.End),
		Vec: uint64(uintptr(unsafe.Pointer(&c.answer))), VecLen: 1, Mask: all, AnyOf: oneOf}
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, p.pagemap.Fd(), uffd.ScanIoctl, uintptr(unsafe.Pointer(&c.arg)))
	if errno != 0 {
		return false, errno
	}
	return n == 1 && c.answer.Start == uint64(r.Start) && c.answer.End == uint64(r.End), nil
}
