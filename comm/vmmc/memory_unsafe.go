package vmmc

import (
	"os"
	"sync/atomic"
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

// wordBytes are those of a word: what one store writes, and what automatic update compares.
const wordBytes = 8

// word returns b as a word, if it is one at an aligned address. It is of sync/atomic: peers and stores of
// the program write there, too.
func word(b []byte) (w *atomic.Uint64, aligned bool) {
	if len(b) != wordBytes || uintptr(unsafe.Pointer(&b[0]))%wordBytes != 0 {
		return nil, false
	}
	return (*atomic.Uint64)(unsafe.Pointer(&b[0])), true
}

// words returns whole pages as words.
func words(r mem.Range) []atomic.Uint64 {
	b := r.Bytes()
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/wordBytes)
}

// bytesOf returns words as bytes.
func bytesOf(w []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), len(w)*wordBytes)
}
