package uffd

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// <linux/userfaultfd.h>
const (
	userModeOnly      = 1          // UFFD_USER_MODE_ONLY, Linux 5.11: no privilege needed
	apiIoctl          = 0xc018aa3f // UFFDIO_API
	registerIoctl     = 0xc020aa00 // UFFDIO_REGISTER
	unregisterIoctl   = 0x8010aa01 // UFFDIO_UNREGISTER
	writeProtectIoctl = 0xc018aa06 // UFFDIO_WRITEPROTECT
	modeWP            = 2          // UFFDIO_REGISTER_MODE_WP
	protectWP         = 1          // UFFDIO_WRITEPROTECT_MODE_WP
)

// Features of Open.
const (
	EventRemap    = 1 << 2  // UFFD_FEATURE_EVENT_REMAP
	EventRemove   = 1 << 3  // UFFD_FEATURE_EVENT_REMOVE
	EventUnmap    = 1 << 6  // UFFD_FEATURE_EVENT_UNMAP
	WPShared      = 1 << 12 // UFFD_FEATURE_WP_HUGETLBFS_SHMEM, Linux 5.19: write tracking of shared memory
	WPUnpopulated = 1 << 13 // UFFD_FEATURE_WP_UNPOPULATED, Linux 6.4: also of pages that are not there yet
	WPAsync       = 1 << 15 // UFFD_FEATURE_WP_ASYNC, Linux 6.7
)

// Open makes a userfaultfd, which the caller closes. It needs no privilege.
func Open(features uint64) (fd int, err error) {
	f, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK|userModeOnly, 0, 0)
	if errno != 0 {
		return -1, fmt.Errorf("userfaultfd: %w (seccomp?)", errno)
	}
	api := [3]uint64{0xaa, features, 0} // UFFD_API
	if err := ioctl(f, apiIoctl, unsafe.Pointer(&api)); err != nil {
		unix.Close(int(f))
		return -1, fmt.Errorf("UFFDIO_API with features %#x: %w (needs Linux %s)", features, err, leastLinux(features))
	}
	return int(f), nil
}

// leastLinux is the first kernel with UFFD_USER_MODE_ONLY and all of the features.
func leastLinux(features uint64) string {
	switch {
	case features&WPAsync != 0:
		return "6.7"
	case features&WPUnpopulated != 0:
		return "6.4"
	case features&WPShared != 0:
		return "5.19"
	}
	return "5.11"
}

// Register tracks writes to r, which must be whole pages.
func Register(fd int, r mem.Range) error {
	arg := [4]uint64{uint64(r.Start), r.Len(), modeWP, 0}
	if err := ioctl(uintptr(fd), registerIoctl, unsafe.Pointer(&arg)); err != nil {
		return fmt.Errorf("UFFDIO_REGISTER of %v: %w", r, err)
	}
	return nil
}

// Unregister ends Register. It may fail where the mapping is gone or another: that needs no end.
func Unregister(fd int, r mem.Range) {
	arg := [2]uint64{uint64(r.Start), r.Len()}
	_ = ioctl(uintptr(fd), unregisterIoctl, unsafe.Pointer(&arg))
}

// Protect makes all pages of r clean: from now on Written tells of those that are written to.
func Protect(fd int, r mem.Range) error {
	arg := [3]uint64{uint64(r.Start), r.Len(), protectWP}
	if err := ioctl(uintptr(fd), writeProtectIoctl, unsafe.Pointer(&arg)); err != nil {
		return fmt.Errorf("UFFDIO_WRITEPROTECT of %v: %w", r, err)
	}
	return nil
}

// IsChanging reports whether a change of tracked memory is under way of which an event is still to be read: munmap(2),
// mremap(2) or MADV_DONTNEED, by any thread. It is from before the change until the event is read, which is when the
// kernel answers EAGAIN (userfaultfd_writeprotect in fs/userfaultfd.c; ioctl_userfaultfd(2)). If the kernel can't be
// asked, it is true.
func IsChanging(fd int) bool {
	arg := [3]uint64{} // no range has a length of zero: EINVAL
	return ioctl(uintptr(fd), writeProtectIoctl, unsafe.Pointer(&arg)) != unix.EINVAL
}

// ScanArg is struct pm_scan_arg, <linux/fs.h>.
type ScanArg struct {
	Size, Flags, Start, End, WalkEnd, Vec, VecLen, MaxPages uint64
	Inverted, Mask, AnyOf, Returned                         uint64
}

const (
	// ScanIoctl is PAGEMAP_SCAN, for a descriptor of /proc/PID/pagemap.
	ScanIoctl = 0xc0606610

	WPAllowed = 1 << 0 // PAGE_IS_WPALLOWED: registered with a userfaultfd in async mode
	written   = 1 << 1 // PAGE_IS_WRITTEN
	Present   = 1 << 3 // PAGE_IS_PRESENT
	Swapped   = 1 << 4 // PAGE_IS_SWAPPED: or on its way to another frame

	protectMatching = 1 << 0 // PM_SCAN_WP_MATCHING
	checkAsync      = 1 << 1 // PM_SCAN_CHECK_WPASYNC
)

// PageRegion is struct page_region of <linux/fs.h>.
type PageRegion struct{ Start, End, Categories uint64 }

// Scanner finds written pages. It is for one goroutine at a time, and on the heap: it holds addresses of
// its own as numbers.
type Scanner struct {
	arg    ScanArg
	answer [64]PageRegion
}

// Written appends the pages of r that were written to since they were clean, and makes them clean: a store
// after that is found by the next call. pagemap is /proc/self/pagemap. If it fails, those appended are clean.
func (s *Scanner) Written(pagemap *os.File, r mem.Range, to []mem.Range) ([]mem.Range, error) {
	for at := uint64(r.Start); at < uint64(r.End); at = s.arg.WalkEnd {
		s.arg = ScanArg{
			Size: uint64(unsafe.Sizeof(s.arg)), Flags: protectMatching | checkAsync, Start: at, End: uint64(r.End),
			Vec: uint64(uintptr(unsafe.Pointer(&s.answer))), VecLen: uint64(len(s.answer)), Mask: written, Returned: written,
		}
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, pagemap.Fd(), ScanIoctl, uintptr(unsafe.Pointer(&s.arg)))
		if errno == unix.EINTR {
			s.arg.WalkEnd = at
			continue
		}
		if errno != 0 {
			return to, fmt.Errorf("PAGEMAP_SCAN of %v: %w", r, errno)
		}
		for _, p := range s.answer[:n] {
			to = append(to, mem.Range{Start: mem.Addr(p.Start), End: mem.Addr(p.End)})
		}
		if s.arg.WalkEnd <= at {
			return to, fmt.Errorf("PAGEMAP_SCAN of %v stays at %#x", r, at)
		}
	}
	return to, nil
}

func ioctl(fd, op uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, op, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}
