package vmwatch

import (
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel detaches a program when its last link is closed, and waits until every task has scheduled: some
// 200 ms for each. close(2) would wait for that, and so would the end of the process. But the files
// of an io_uring are closed by a worker of the kernel, whoever ended the ring, SIGKILL included.

const registerFiles = 2 // IORING_REGISTER_FILES, <linux/io_uring.h>

// linger leaves it to the kernel to close the links, once this process has closed what linger returns, or
// has ended. Where the kernel has no io_uring for this process, they stay as they are.
func linger(links []io.Closer) []io.Closer {
	var files []int32
	for _, l := range links {
		l, ok := l.(interface{ FD() int })
		if !ok {
			return links
		}
		files = append(files, int32(l.FD()))
	}
	ring, err := ringOf(files)
	if err != nil {
		return links
	}
	for _, l := range links {
		l.Close() // not the last reference
	}
	return []io.Closer{descriptor(ring)}
}

// ringOf returns an io_uring that has files, for nothing else.
func ringOf(files []int32) (fd int, err error) {
	var params [120]byte // struct io_uring_params
	ring, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if errno != 0 {
		return -1, os.NewSyscallError("io_uring_setup", errno)
	}
	_, _, errno = unix.Syscall6(unix.SYS_IO_URING_REGISTER, ring, registerFiles,
		uintptr(unsafe.Pointer(unsafe.SliceData(files))), uintptr(len(files)), 0, 0)
	if errno != 0 {
		unix.Close(int(ring))
		return -1, os.NewSyscallError("io_uring_register", errno)
	}
	return int(ring), nil
}
