//go:build fabric

package fabric

// #cgo LDFLAGS: -lfabric
// #include <stdlib.h>
// #include "fabric.h"
import "C"

import (
	"fmt"
	"unsafe"

	"pinwheel/mem"
	_ "pinwheel/mpishim/watch/capi" // what fabric.c calls
)

// Cache is the cache of a domain of libfabric, and a connection within the process whose near end uses it.
type Cache struct {
	c    *C.struct_fabric
	last C.uint64_t // key of the last registration
}

// Region is a registration.
type Region struct{ mr C.struct_fabric_mr }

func check(what string, status C.int) error {
	if status == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", what, C.GoString(C.fabric_error(status)))
}

// Open opens the process's only Cache, under the monitor memhooks, userfaultfd, disabled or pinwheel; that under a
// mechanism of vmwatch. The far end of the connection has n bytes of memory.
func Open(monitor, mechanism string, n uint64) (*Cache, error) {
	m, w := C.CString(monitor), C.CString(mechanism)
	defer C.free(unsafe.Pointer(m))
	defer C.free(unsafe.Pointer(w))
	c := &Cache{}
	if err := check("open libfabric under "+monitor, C.fabric_open(m, w, C.size_t(n), &c.c)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func pointer(r mem.Range) unsafe.Pointer {
	start := r.Start
	return *(*unsafe.Pointer)(unsafe.Pointer(&start))
}

// Acquire returns the registration that libfabric has or makes for r. One that it had has a key that was seen before.
func (c *Cache) Acquire(r mem.Range) (g *Region, hit bool, release func(), err error) {
	g = &Region{}
	if err := check("fi_mr_reg", C.fabric_register(c.c, pointer(r), C.size_t(r.Len()), &g.mr)); err != nil {
		return nil, false, nil, err
	}
	hit = g.mr.key == c.last
	c.last = g.mr.key
	return g, hit, func() { C.fabric_deregister(&g.mr) }, nil
}

// Send moves r to the memory of the far end, and Receive the other way.
func (c *Cache) Send(g *Region, r mem.Range) error {
	return check("fi_write", C.fabric_write(c.c, pointer(r), C.size_t(r.Len()), &g.mr))
}

func (c *Cache) Receive(g *Region, r mem.Range) error {
	return check("fi_read", C.fabric_read(c.c, pointer(r), C.size_t(r.Len()), &g.mr))
}

// Far is the memory of the far end.
func (c *Cache) Far(n uint64) []byte { return unsafe.Slice((*byte)(C.fabric_far(c.c)), n) }

// Time returns the nanoseconds of each of n acquisitions and releases in C.
func (c *Cache) Time(r mem.Range, n int) float64 {
	return float64(C.fabric_time(c.c, pointer(r), C.size_t(r.Len()), C.int(n)))
}

// Close closes all of it.
func (c *Cache) Close() { C.fabric_close(c.c) }
