package verbstest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

// holes are what Unmap has unmapped: others may have mapped something there.
var holes struct {
	sync.Mutex
	set mem.Set
}

// Map is MapSmallPages for the duration of a test.
func Map(t testing.TB, n uint64) ([]byte, mem.Range) {
	t.Helper()
	b, err := MapSmallPages(n)
	if err != nil {
		t.Fatal(err)
	}
	r := mem.RangeOf(b)
	t.Cleanup(func() {
		Unmap(t, r)
		holes.Lock()
		defer holes.Unlock()
		holes.set.Remove(r)
	})
	return b, r
}

// lowest is where memory is mapped from on: far below where the kernel looks for room by itself, so that nothing
// else of the process takes a hole that a test has made.
const lowest mem.Addr = 1 << 40

var used atomic.Uint64 // bytes from lowest on

// MapSmallPages maps n bytes of private anonymous memory, writable and not
// touched yet. Its pages are small, whatever the machine's setting of
// transparent huge pages, which the kernel would count whole.
func MapSmallPages(n uint64) ([]byte, error) {
	room := (n + 4<<20) &^ (2<<20 - 1) // with something between it and the next
	at := lowest + mem.Addr(used.Add(room)-room)
	start, _, errno := unix.Syscall6(unix.SYS_MMAP, uintptr(at), uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0), 0)
	if errno != 0 {
		return nil, fmt.Errorf("mmap of %s: %w", mem.FormatBytes(n), errno)
	}
	b := mem.Range{Start: mem.Addr(start), End: mem.Addr(start) + mem.Addr(n)}.Bytes()
	// EINVAL: kernel without huge pages
	if err := unix.Madvise(b, unix.MADV_NOHUGEPAGE); err != nil && err != unix.EINVAL {
		return nil, fmt.Errorf("madvise(MADV_NOHUGEPAGE): %w", err)
	}
	return b, nil
}

// Unmap leaves a hole where r, of one Map, was.
func Unmap(t testing.TB, r mem.Range) {
	t.Helper()
	holes.Lock()
	defer holes.Unlock()
	mapped := mem.NewSet(r)
	for hole := range holes.set.All() {
		mapped.Remove(hole)
	}
	for part := range mapped.All() {
		if _, _, errno := unix.Syscall(unix.SYS_MUNMAP, uintptr(part.Start), uintptr(part.Len()), 0); errno != 0 {
			t.Fatalf("munmap of %v: %v", part, errno)
		}
	}
	holes.set.Add(r)
}

// Part returns the range of n bytes at offset off of r.
func Part(r mem.Range, off, n uint64) mem.Range {
	return mem.Range{Start: r.Start + mem.Addr(off), End: r.Start + mem.Addr(off+n)}
}
