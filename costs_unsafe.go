package pinwheel

import (
	"unsafe"

	"pinwheel/mem"
)

// rangeOf returns where b is. What the garbage collector may move or free is
// not for registration: b must come from mmap.
func rangeOf(b []byte) mem.Range {
	start := mem.Addr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	return mem.Range{Start: start, End: start + mem.Addr(len(b))}
}
