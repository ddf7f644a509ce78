package uring

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// From <linux/io_uring.h>; see io_uring_setup(2), io_uring_register(2).
const (
	setupRDisabled = 1 << 6 // IORING_SETUP_R_DISABLED, Linux 5.10

	registerEnableRings     = 12      // IORING_REGISTER_ENABLE_RINGS, 5.10
	registerBuffers2        = 15      // IORING_REGISTER_BUFFERS2, 5.13
	registerBuffersUpdate   = 16      // IORING_REGISTER_BUFFERS_UPDATE, 5.13
	unregisterBuffers       = 1       // IORING_UNREGISTER_BUFFERS, 5.1
	rsrcRegisterSparse      = 1       // IORING_RSRC_REGISTER_SPARSE, 5.19
	maxRegisteredBufferSize = 1 << 30 // SZ_1G in io_uring/rsrc.c
)

// setupParams is struct io_uring_params.
type setupParams struct {
	sqEntries, cqEntries, flags, sqThreadCPU, sqThreadIdle, features, wqFd uint32
	_                                                                      [3]uint32
	sq                                                                     sqOffsets
	cq                                                                     cqOffsets
}

// sqOffsets is struct io_sqring_offsets.
type sqOffsets struct {
	head, tail, ringMask, ringEntries, flags, dropped, array, _ uint32
	userAddr                                                    uint64
}

// cqOffsets is struct io_cqring_offsets.
type cqOffsets struct {
	head, tail, ringMask, ringEntries, overflow, cqes, flags, _ uint32
	userAddr                                                    uint64
}

// rsrcRegister is struct io_uring_rsrc_register.
type rsrcRegister struct {
	nr, flags        uint32
	_                uint64
	dataAddr, tagsAt uint64
}

// rsrcUpdate is struct io_uring_rsrc_update2.
type rsrcUpdate struct {
	offset, _        uint32
	dataAddr, tagsAt uint64
	nr, _            uint32
}

// iovec is struct iovec of <sys/uio.h>.
type iovec struct {
	base, len uint64
}

// scratch is the memory of one ring that the kernel reads arguments from. It
// is mapped, not allocated: the update names its iovec by a number, which the
// garbage collector does not see and a moving stack would not correct.
type scratch struct {
	update rsrcUpdate
	iov    iovec
}

// setup creates a disabled ring of one submission entry.
func setup() (fd int, p setupParams, errno syscall.Errno) {
	p.flags = setupRDisabled
	n, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p)), 0)
	return int(n), p, errno
}

// makeTable gives a ring an empty table of nr slots.
func makeTable(fd int, nr uint32) syscall.Errno {
	arg := rsrcRegister{nr: nr, flags: rsrcRegisterSparse}
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), registerBuffers2,
		uintptr(unsafe.Pointer(&arg)), unsafe.Sizeof(arg), 0, 0)
	return errno
}

// dropTable releases every buffer of a ring, before it returns. (Closing the
// ring would leave that to a kernel worker.) Old kernels wait for such a
// worker here, until a signal comes.
func dropTable(fd int) syscall.Errno {
	for {
		_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), unregisterBuffers, 0, 0, 0, 0)
		if errno != unix.EINTR {
			return errno
		}
	}
}

// enable lets a ring accept submissions.
func enable(fd int) syscall.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), registerEnableRings, 0, 0, 0, 0)
	return errno
}

// newScratch maps a page for a ring's arguments.
func newScratch() (*scratch, error) {
	b, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, err
	}
	s := (*scratch)(unsafe.Pointer(unsafe.SliceData(b)))
	s.update.nr = 1
	s.update.dataAddr = uint64(uintptr(unsafe.Pointer(&s.iov)))
	return s, nil
}

func (s *scratch) free() {
	_ = unix.MunmapPtr(unsafe.Pointer(s), uintptr(os.Getpagesize()))
}

// fill registers r, at most 1 GiB, in an empty slot; an empty r empties the slot.
func (s *scratch) fill(fd int, slot uint16, r mem.Range) syscall.Errno {
	s.update.offset = uint32(slot)
	s.iov = iovec{}
	if !r.Empty() {
		s.iov = iovec{base: uint64(r.Start), len: r.Len()}
	}
	_, _, errno := unix.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), registerBuffersUpdate,
		uintptr(unsafe.Pointer(&s.update)), unsafe.Sizeof(s.update), 0, 0)
	return errno
}
