package vmwatch

import "unsafe"

func addressOf(words []uint64) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(words))) }
