//go:build linux && cgo

package rc_test

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// remap unmaps b, whole pages of memory from verbstest.Map, and maps fresh
// pages at the same addresses.
func remap(t testing.TB, b []byte) {
	t.Helper()
	p, n := unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b))
	if err := unix.MunmapPtr(p, n); err != nil {
		t.Fatal(err)
	}
	_, err := unix.MmapPtr(-1, 0, p, n, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		t.Fatalf("the address was taken in the meantime: %v", err)
	}
}
