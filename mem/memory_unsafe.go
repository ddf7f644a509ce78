package mem

import "unsafe"

// RangeOf returns where b lies.
func RangeOf(b []byte) Range {
	start := Addr(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	return Range{start, start + Addr(len(b))}
}

// Bytes views the memory at r, which must be mapped and outside the Go heap.
func (r Range) Bytes() []byte {
	// Going through the address of r.Start tells vet that this is meant.
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&r.Start))), r.Len())
}
