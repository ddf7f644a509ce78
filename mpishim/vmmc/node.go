package main

/*
#cgo CFLAGS: -O2
#include "objects.h"
*/
import "C"

import (
	"fmt"
	"math"
	"runtime/cgo"
	"time"
	"unsafe"

	"pinwheel/comm/vmmc"
	"pinwheel/mem"
)

// object is what all objects of C look like: see objects.h.
type object interface {
	C.pinwheel_vmmc_node | C.pinwheel_vmmc_export | C.pinwheel_vmmc_import | C.pinwheel_vmmc_mapping | C.pinwheel_vmmc_op
}

// newObject returns an object of C, in its memory, for one of Go.
func newObject[O object](v any) *O {
	o := (*O)(C.malloc(C.size_t(unsafe.Sizeof(cgo.Handle(0))))) // malloc of cgo does not fail
	*(*cgo.Handle)(unsafe.Pointer(o)) = cgo.NewHandle(v)
	return o
}

// of returns the object of Go.
func of[V any, O object](o *O) V { return (*(*cgo.Handle)(unsafe.Pointer(o))).Value().(V) }

func freeObject[O object](o *O) {
	(*(*cgo.Handle)(unsafe.Pointer(o))).Delete()
	C.free(unsafe.Pointer(o))
}

// maxListed is how many peers or users an export can permit.
const maxListed = 1 << 16

// texts copies an array of strings that ends with NULL.
func texts(at **C.vmmc_text) (all []string) {
	if at == nil {
		return nil
	}
	for _, t := range unsafe.Slice(at, maxListed) {
		if t == nil {
			break
		}
		all = append(all, C.GoString((*C.char)(unsafe.Pointer(t))))
	}
	return all
}

func text(t *C.vmmc_text) string { return C.GoString((*C.char)(unsafe.Pointer(t))) }

// memoryOf is memory of C as a slice. It fails for sizes that no memory at that address has: a slice of those panics.
func memoryOf(at unsafe.Pointer, bytes C.size_t) ([]byte, error) {
	if bytes > math.MaxInt || bytes > 0 && uintptr(bytes) > -uintptr(at) {
		return nil, fmt.Errorf("vmmc: %w: %d bytes at %#x", mem.ErrOverflow, uint64(bytes), uintptr(at))
	}
	return unsafe.Slice((*byte)(at), int(bytes)), nil
}

// known is a structure of which a program gave size bytes: it may have been built with an older header, which has
// first bytes or more, and then the fields that came later are zero. It is false if the size makes no sense.
func known[T any](given *T, size, first uintptr) (t T, ok bool) {
	n := int(min(size, unsafe.Sizeof(t)))
	if size < first {
		return t, false
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&t)), n), unsafe.Slice((*byte)(unsafe.Pointer(given)), n))
	return t, true
}

// maxMs is the longest time in milliseconds that Go knows.
const maxMs = math.MaxInt64 / int64(time.Millisecond)

//export pinwheel_vmmc_open
func pinwheel_vmmc_open(options *C.vmmc_options, node **C.pinwheel_vmmc_node) C.int {
	if node == nil {
		return invalid()
	}
	var o vmmc.Options
	if options != nil {
		options, ok := known(options, uintptr(options.size), C.vmmc_options_0)
		if !ok || options.heartbeat_ms < 0 || int64(options.heartbeat_ms) > maxMs {
			return invalid()
		}
		o.Name, o.Token = text(options.name), text(options.token)
		o.Listen = texts((**C.vmmc_text)(unsafe.Pointer(options.listen)))
		o.Heartbeat = time.Duration(options.heartbeat_ms) * time.Millisecond
		if f, arg := options.warn, options.warn_arg; f != nil {
			o.Warn = func(m string) {
				c := C.CString(m)
				defer C.free(unsafe.Pointer(c))
				C.vmmc_call_warn(f, arg, c)
			}
		}
	}
	n, err := vmmc.Open(o)
	if err == nil {
		*node = newObject[C.pinwheel_vmmc_node](n)
	}
	return status(err)
}

//export pinwheel_vmmc_close
func pinwheel_vmmc_close(node *C.pinwheel_vmmc_node) C.int {
	if node == nil {
		return invalid()
	}
	err := of[*vmmc.Node](node).Close()
	freeObject(node)
	return status(err)
}

//export pinwheel_vmmc_address
func pinwheel_vmmc_address(node *C.pinwheel_vmmc_node, k C.uint, address *C.char, size C.size_t) C.int {
	if node == nil || address == nil {
		return invalid()
	}
	all := of[*vmmc.Node](node).Addresses()
	if int(k) >= len(all) {
		return -C.ENOENT
	}
	if C.size_t(len(all[k])) >= size {
		return status(fmt.Errorf("%w: %d bytes for an address of %d", vmmc.ErrBounds, size, len(all[k])))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(address)), len(all[k])+1), all[k]+"\x00")
	return 0
}

//export pinwheel_vmmc_alloc
func pinwheel_vmmc_alloc(node *C.pinwheel_vmmc_node, bytes C.size_t, memory *unsafe.Pointer) C.int {
	if node == nil || memory == nil || bytes == 0 {
		return invalid()
	}
	b, err := of[*vmmc.Node](node).Alloc(uint64(bytes))
	if err == nil {
		*memory = unsafe.Pointer(unsafe.SliceData(b))
	}
	return status(err)
}

//export pinwheel_vmmc_free
func pinwheel_vmmc_free(node *C.pinwheel_vmmc_node, memory unsafe.Pointer) C.int {
	if node == nil || memory == nil {
		return invalid()
	}
	return status(of[*vmmc.Node](node).Free(unsafe.Slice((*byte)(memory), 1))) // it asks for the first byte only
}
