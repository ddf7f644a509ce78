//go:build linux && cgo

package rc_test

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// remap replaces b, whole pages of memory from verbstest.Map, by fresh pages. The kernel unmaps the old ones in the same
// call: between two, the Go runtime might take the addresses.
func remap(t testing.TB, b []byte) {
	t.Helper()
	_, err := unix.MmapPtr(-1, 0, unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED)
	if err != nil {
		t.Fatal(err)
	}
}
