package uring_test

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

const mapChunk = 1 << 20

// mapRepeatedly returns n bytes of address space that show one MiB of shared
// memory over and over.
func mapRepeatedly(t *testing.T, n uint64) mem.Range {
	t.Helper()
	fd, err := unix.MemfdCreate("repeated", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, mapChunk); err != nil {
		t.Fatal(err)
	}
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.MunmapPtr(base, uintptr(n)); err != nil {
			t.Errorf("munmap: %v", err)
		}
	})
	for off := uint64(0); off < n; off += mapChunk {
		mapFixed(t, unsafe.Add(base, off), min(n-off, mapChunk), fd, unix.MAP_SHARED)
	}
	start := mem.Addr(uintptr(base))
	return mem.Range{Start: start, End: start + mem.Addr(n)}
}

// replace puts fresh memory in the place of b, which stays valid.
func replace(t *testing.T, b []byte) {
	t.Helper()
	mapFixed(t, unsafe.Pointer(unsafe.SliceData(b)), uint64(len(b)), -1, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
}

func mapFixed(t *testing.T, at unsafe.Pointer, n uint64, fd, flags int) {
	t.Helper()
	if _, err := unix.MmapPtr(fd, 0, at, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, flags|unix.MAP_FIXED); err != nil {
		t.Fatal(err)
	}
}

// faults is a userfaultfd that holds up whoever touches its range; see
// userfaultfd(2) and <linux/userfaultfd.h>.
type faults struct {
	fd int
	r  mem.Range
}

const (
	uffdAPI            = 0xaa
	uffdioAPI          = 0xc018aa3f // UFFDIO_API
	uffdioRegister     = 0xc020aa00 // UFFDIO_REGISTER
	uffdioZeropage     = 0xc020aa04 // UFFDIO_ZEROPAGE
	uffdRegisterMissed = 1          // UFFDIO_REGISTER_MODE_MISSING
)

// holdUpFaults makes every first touch of r, by the kernel too, wait for
// letGo. It skips the test where the kernel keeps that to root.
func holdUpFaults(t *testing.T, r mem.Range) *faults {
	t.Helper()
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|unix.O_NONBLOCK, 0, 0)
	if errno == unix.EPERM || errno == unix.ENOSYS {
		t.Skipf("userfaultfd of kernel faults needs CAP_SYS_PTRACE or vm.unprivileged_userfaultfd=1: %v", errno)
	}
	if errno != 0 {
		t.Fatal(errno)
	}
	f := &faults{fd: int(fd), r: r}
	t.Cleanup(func() { unix.Close(f.fd) })
	f.ioctl(t, uffdioAPI, &[4]uint64{uffdAPI})
	f.ioctl(t, uffdioRegister, &[4]uint64{uint64(r.Start), r.Len(), uffdRegisterMissed})
	return f
}

// awaited reports whether somebody has touched the range within a moment.
func (f *faults) awaited(t *testing.T) bool {
	t.Helper()
	const momentMs = 20
	poll := []unix.PollFd{{Fd: int32(f.fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, momentMs); n == 0 || err == unix.EINTR {
		return false
	}
	var msg [32]byte // struct uffd_msg
	if _, err := unix.Read(f.fd, msg[:]); err != nil {
		t.Fatal(err)
	}
	return true
}

// letGo puts pages in place and lets everybody continue.
func (f *faults) letGo(t *testing.T) {
	t.Helper()
	f.ioctl(t, uffdioZeropage, &[4]uint64{uint64(f.r.Start), f.r.Len()})
}

func (f *faults) ioctl(t *testing.T, op uintptr, arg *[4]uint64) {
	t.Helper()
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(f.fd), op, uintptr(unsafe.Pointer(arg))); errno != 0 {
		t.Fatalf("userfaultfd ioctl %#x: %v", op, errno)
	}
}
