package verbstest

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// Map maps n bytes of private anonymous memory, writable, of small pages, and
// unmaps them when the test ends. It is not touched yet.
func Map(t testing.TB, n uint64) ([]byte, mem.Range) {
	t.Helper()
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatalf("mmap of %s: %v", mem.FormatBytes(n), err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })                                            // fails if the test has punched a hole; the process ends soon
	if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL { // EINVAL: kernel without huge pages
		t.Fatalf("madvise(MADV_NOHUGEPAGE): %v", err)
	}
	return b, RangeOf(b)
}

// RangeOf returns where b lies.
func RangeOf(b []byte) mem.Range {
	start := mem.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	return mem.Range{Start: start, End: start + mem.Addr(len(b))}
}

// Unmap leaves a hole where b was, which must be whole pages of memory from Map.
func Unmap(t testing.TB, b []byte) {
	t.Helper()
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b))); err != nil {
		t.Fatalf("munmap: %v", err)
	}
}
