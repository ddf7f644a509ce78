package vmmcbench

import (
	"sync/atomic"
	"unsafe"
)

// wordOf is the first word of memory. It is of sync/atomic: the other end stores there.
func wordOf(b []byte) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[0])) }
