package vmmc

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// mapOver maps a file from offset at, in bytes, at the addresses r. What was mapped there is replaced at once:
// no thread ever finds the pages unmapped (mmap(2), MAP_FIXED).
func mapOver(fd int, at uint64, r mem.Range) error {
	address := unsafe.Pointer(unsafe.SliceData(r.Bytes()))
	_, err := unix.MmapPtr(fd, int64(at), address, uintptr(r.Len()), readWrite, unix.MAP_SHARED|unix.MAP_FIXED)
	return os.NewSyscallError("mmap", err)
}
