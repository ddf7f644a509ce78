package vmmc

import (
	"sync/atomic"
	"unsafe"
)

// wordAt is the word of a message at off. It is not of go.uber.org/atomic: peers write to it.
func wordAt(b []byte, off int) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&b[off])) }
