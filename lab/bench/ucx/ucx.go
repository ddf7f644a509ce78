//go:build ucx

package ucx

// #cgo LDFLAGS: -lucs -lucm
// #include "ucx.h"
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// provider and regions serve the callbacks: UCX has one cache here.
var (
	provider verbs.Provider
	// mu guards the two below; the callbacks come from any thread.
	mu      sync.Mutex
	regions = map[uint64]verbs.Region{}
	last    uint64
)

// Cache is one ucs_rcache.
type Cache struct{ c *C.struct_cache }

// New makes the process's only Cache, over p.
func New(p verbs.Provider) (*Cache, error) {
	provider = p
	c := C.cache_new()
	if c == nil {
		return nil, fmt.Errorf("ucs_rcache_create failed")
	}
	return &Cache{c}, nil
}

// Acquire returns the registration that UCX has or makes for r.
func (c *Cache) Acquire(r mem.Range) (g verbs.Region, hit bool, release func(), err error) {
	mu.Lock()
	before := last
	mu.Unlock()
	var region unsafe.Pointer
	var handle C.uint64_t
	start := r.Start
	addr := *(*unsafe.Pointer)(unsafe.Pointer(&start))
	if status := C.cache_get(c.c, addr, C.size_t(r.Len()), &region, &handle); status != 0 {
		return verbs.Region{}, false, nil, fmt.Errorf("ucs_rcache_get of %v: status %d", r, status)
	}
	mu.Lock()
	defer mu.Unlock()
	return regions[uint64(handle)], last == before, func() { C.cache_put(c.c, region) }, nil
}

// Close releases every registration.
func (c *Cache) Close() { C.cache_free(c.c) }

//export ucxRegister
func ucxRegister(start, end C.ulong) C.uint64_t {
	r := mem.Range{Start: mem.Addr(start), End: mem.Addr(end)}
	g, err := provider.Register(r.PageAligned(), verbs.AccessLocalWrite)
	if err != nil {
		return 0
	}
	mu.Lock()
	defer mu.Unlock()
	last++
	regions[last] = g
	return C.uint64_t(last)
}

//export ucxDeregister
func ucxDeregister(handle C.uint64_t) {
	mu.Lock()
	g := regions[uint64(handle)]
	delete(regions, uint64(handle))
	mu.Unlock()
	// UCX has no way to hear of a failure; the provider's Close releases the rest.
	_ = provider.Deregister(g)
}
