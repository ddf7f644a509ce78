//go:build amd64

package vmwatch

import (
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// <linux/userfaultfd.h>
const (
	uffdUserModeOnly = 1          // UFFD_USER_MODE_ONLY, Linux 5.11: no privilege needed
	uffdAPIIoctl     = 0xc018aa3f // UFFDIO_API
	uffdRegister     = 0xc020aa00 // UFFDIO_REGISTER
	uffdUnregister   = 0x8010aa01 // UFFDIO_UNREGISTER
	uffdModeWP       = 2          // UFFDIO_REGISTER_MODE_WP

	uffdFeatures = 1<<2 | 1<<3 | 1<<6 | 1<<13 | 1<<15 // EVENT_REMAP, _REMOVE, _UNMAP, WP_UNPOPULATED, WP_ASYNC (Linux 6.7)

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

// uffdOpen needs no privilege and asks for nothing that could block a fault.
func uffdOpen() (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|uffdUserModeOnly, 0, 0)
	if errno != 0 {
		return -1, fmt.Errorf("userfaultfd: %w (seccomp?)", errno)
	}
	api := [3]uint64{0xaa, uffdFeatures, 0} // UFFD_API
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdAPIIoctl, uintptr(unsafe.Pointer(&api))); errno != 0 {
		unix.Close(int(fd))
		return -1, fmt.Errorf("UFFDIO_API with WP_ASYNC: %w (needs Linux 6.7)", errno)
	}
	return int(fd), nil
}

func uffdArm(fd int, r mem.Range) error {
	arg := [4]uint64{uint64(r.Start), r.Len(), uffdModeWP, 0}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uffdRegister, uintptr(unsafe.Pointer(&arg))); errno != 0 {
		return fmt.Errorf("UFFDIO_REGISTER of %v: %w", r, errno)
	}
	return nil
}

// uffdDisarm may fail where the mapping is gone or another: that needs no disarming.
func uffdDisarm(fd int, r mem.Range) {
	arg := [2]uint64{uint64(r.Start), r.Len()}
	unix.Syscall(unix.SYS_IOCTL, uintptr(fd), uffdUnregister, uintptr(unsafe.Pointer(&arg)))
}

// pmScanArg is struct pm_scan_arg, <linux/fs.h>, Linux 6.7.
type pmScanArg struct {
	size, flags, start, end, walkEnd, vec, vecLen, maxPages uint64
	inverted, mask, anyOf, returned                         uint64
}

const (
	pagemapScanIoctl = 0xc0606610 // PAGEMAP_SCAN
	pageIsWPAllowed  = 1 << 0     // PAGE_IS_WPALLOWED: registered with a userfaultfd in async mode
	pageIsPresent    = 1 << 3     // PAGE_IS_PRESENT
)

// pageRegion is struct page_region.
type pageRegion struct{ start, end, categories uint64 }

// scanCall is one PAGEMAP_SCAN with room for its answer. It holds its own
// address as a number, so it must be on the heap, which doesn't move.
type scanCall struct {
	arg    pmScanArg
	answer pageRegion
}

var scanCalls = sync.Pool{New: func() any { return new(scanCall) }}

// pagesAre reports whether every page of r has all of these properties.
func pagesAre(pagemap uintptr, r mem.Range, properties uint64) bool {
	c := scanCalls.Get().(*scanCall)
	defer scanCalls.Put(c)
	c.arg = pmScanArg{size: uint64(unsafe.Sizeof(c.arg)), start: uint64(r.Start), end: uint64(r.End),
		vec: uint64(uintptr(unsafe.Pointer(&c.answer))), vecLen: 1, mask: properties, returned: properties}
	n, _, errno := unix.Syscall(unix.SYS_IOCTL, pagemap, pagemapScanIoctl, uintptr(unsafe.Pointer(&c.arg)))
	return errno == 0 && n == 1 && c.answer.start == uint64(r.Start) && c.answer.end == uint64(r.End)
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
