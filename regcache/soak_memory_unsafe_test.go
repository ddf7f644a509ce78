package regcache_test

import (
	"fmt"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// arena is memory whose every mapped page begins with a number of its own.
type arena struct {
	r      mem.Range
	mapped [arenaPages]bool
	able   [arenaPages]bool // readable and writable
	number [arenaPages]uint64
	maps   [arenaPages]uint32 // how often the page was mapped anew
}

func newArena(t *testing.T) *arena {
	b, err := unix.Mmap(-1, 0, arenaPages*int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{r: mem.Range{Start: mem.Addr(uintptr(unsafe.Pointer(&b[0])))}}
	a.r.End = a.r.Start + mem.Addr(len(b))
	for i := range arenaPages {
		a.mapped[i], a.able[i] = true, true
	}
	return a
}

func (a *arena) pages(from, n int) mem.Range {
	start := a.r.Start + mem.Addr(from)*mem.Addr(mem.PageSize)
	return mem.Range{Start: start, End: start + mem.Addr(n)*mem.Addr(mem.PageSize)}
}

// pointer makes one of an address that is not of the Go heap.
func pointer(a mem.Addr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }

func (s *soak) remap(a *arena, from, n int, mapIt bool) {
	r := a.pages(from, n)
	if err := s.c.Invalidate(r); err != nil {
		s.t.Error(err)
	}
	prot := unix.PROT_READ | unix.PROT_WRITE
	if !mapIt {
		prot = unix.PROT_NONE // as good as unmapped, and nobody else can get the address
	}
	if _, err := unix.MmapPtr(-1, 0, pointer(r.Start), uintptr(r.Len()), prot,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED); err != nil {
		s.t.Error(fmt.Errorf("mmap of %v: %w", r, err))
	}
	for i := from; i < from+n; i++ {
		a.mapped[i], a.able[i], a.number[i] = mapIt, mapIt, 0
		a.maps[i]++
	}
}

func (s *soak) protect(a *arena, from, n, how int) {
	for i := from; i < from+n; i++ {
		if !a.mapped[i] {
			return
		}
	}
	prot := [...]int{unix.PROT_READ, unix.PROT_READ | unix.PROT_WRITE, unix.PROT_READ | unix.PROT_WRITE}[how]
	r := a.pages(from, n)
	if err := unix.Mprotect(unsafe.Slice((*byte)(pointer(r.Start)), r.Len()), prot); err != nil {
		s.t.Error(err)
	}
	for i := from; i < from+n; i++ {
		a.able[i] = prot&unix.PROT_WRITE != 0
	}
}
