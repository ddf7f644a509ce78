//go:build linux

package arena

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

var (
	// ErrFull means that no free run of pages is long enough.
	ErrFull = errors.New("arena: no room")
	// ErrNotAllocated means that the slice is not one that Alloc returned, or was freed before.
	ErrNotAllocated = errors.New("arena: not allocated here")
	// ErrInUse means that something is still allocated.
	ErrInUse = errors.New("arena: memory still in use")
)

// Arena is a mapping from which page-aligned buffers are allocated. Its
// methods are safe for concurrent use.
type Arena struct {
	memory []byte
	sealed bool

	// mu protects what follows; a leaf lock.
	mu     sync.Mutex
	free   mem.Set
	used   map[mem.Addr]mem.Range // by start
	closed bool
}

// New maps n bytes, rounded up to whole pages, and seals the mapping where the
// kernel can (mseal(2), Linux 6.10, 64-bit). Pages are taken when first touched.
func New(n uint64) (*Arena, error) {
	n = (n + mem.PageSize - 1) &^ (mem.PageSize - 1)
	b, err := unix.Mmap(-1, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("arena: mmap of %s: %w", mem.FormatBytes(n), err)
	}
	a := &Arena{memory: b, used: map[mem.Addr]mem.Range{}}
	a.free = mem.NewSet(a.Range())
	switch err := unix.Mseal(b, 0); {
	case err == nil:
		a.sealed = true
	case !errors.Is(err, syscall.ENOSYS) && !errors.Is(err, syscall.EPERM): // EPERM: 32 bits, or a seccomp filter
		return nil, errors.Join(fmt.Errorf("arena: mseal of %v: %w", a.Range(), err), unix.Munmap(b))
	}
	return a, nil
}

// Range returns where the arena lies.
func (a *Arena) Range() mem.Range { return mem.RangeOf(a.memory) }

// Sealed reports whether the kernel refuses every change of the mapping until
// the process ends, so that a registration of it can't become stale by one.
func (a *Arena) Sealed() bool { return a.sealed }

// Alloc returns n bytes at the start of a page, the lowest that are free, and
// their range. Memory used before keeps its content.
func (a *Arena) Alloc(n uint64) ([]byte, mem.Range, error) {
	size := mem.Addr((n + mem.PageSize - 1) &^ (mem.PageSize - 1))
	a.mu.Lock()
	defer a.mu.Unlock()
	var r mem.Range
	for free := range a.free.All() {
		if free.Len() >= uint64(size) {
			r = mem.Range{Start: free.Start, End: free.Start + size}
			break
		}
	}
	if r.Empty() || a.closed {
		return nil, mem.Range{}, fmt.Errorf("%w for %s in %v", ErrFull, mem.FormatBytes(n), a.Range())
	}
	a.used[r.Start] = r
	a.free.Remove(r)
	from := uint64(r.Start - a.Range().Start)
	return a.memory[from : from+n : from+uint64(size)], mem.Range{Start: r.Start, End: r.Start + mem.Addr(n)}, nil
}

// Free takes back what Alloc returned. It must no longer be registered: the
// next owner of the memory would share it with the device.
func (a *Arena) Free(b []byte) error {
	start := mem.RangeOf(b).Start
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.used[start]
	if !ok {
		return fmt.Errorf("%w: %#x", ErrNotAllocated, uintptr(start))
	}
	delete(a.used, start)
	a.free.Add(r)
	return nil
}

// Close gives the pages back. The addresses of a sealed arena stay taken until
// the process ends. It fails with ErrInUse, and changes nothing, while anything
// is allocated.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.used) > 0 {
		return fmt.Errorf("%w: %d buffers of %v", ErrInUse, len(a.used), a.Range())
	}
	if a.closed {
		return nil
	}
	a.closed = true
	if a.sealed {
		if err := unix.Madvise(a.memory, unix.MADV_DONTNEED); err != nil {
			return fmt.Errorf("arena: madvise(MADV_DONTNEED) of %v: %w", a.Range(), err)
		}
		return nil
	}
	if err := unix.Munmap(a.memory); err != nil {
		return fmt.Errorf("arena: munmap of %v: %w", a.Range(), err)
	}
	return nil
}
