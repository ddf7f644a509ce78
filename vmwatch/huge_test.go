package vmwatch

import (
	"errors"
	"math"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// hugeRanges are ranges that no machine can pin, and how they are mapped.
func hugeRanges(t *testing.T) map[string]mem.Range {
	t.Helper()
	small, free, err := scratch(16 * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(free)
	all := map[string]mem.Range{}
	for name, n := range map[string]uint64{"4 TiB, 64 KiB mapped": 1 << 42, "64 TiB, 64 KiB mapped": 1 << 46,
		"128 TiB, 64 KiB mapped": 1 << 47, "2^56, 64 KiB mapped": 1 << 56, "2^62, 64 KiB mapped": 1 << 62} {
		all[name] = mem.Range{Start: small.Start, End: small.Start + mem.Addr(n)}
	}
	for name, prot := range map[string]uintptr{"4 TiB writable": unix.PROT_READ | unix.PROT_WRITE,
		"4 TiB inaccessible": unix.PROT_NONE} {
		const n = 1 << 42
		p, err := mmapAt(0, n, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE, -1)
		if errors.Is(err, unix.ENOMEM) {
			t.Logf("without %s: %v (RLIMIT_AS?)", name, err)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Syscall(unix.SYS_MUNMAP, uintptr(p), n, 0) })
		if _, _, errno := unix.Syscall(unix.SYS_MPROTECT, uintptr(p), n, prot); errno != 0 {
			t.Fatal(errno)
		}
		all[name] = mem.Range{Start: p, End: p + n}
	}
	return all
}

// TestLengthCostsNothing watches what can't be pinned: what that needs must
// not depend on the length.
func TestLengthCostsNothing(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		testwait.Bound(t) // to walk through such a range takes longer
		for name, r := range hugeRanges(t) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			token, verify, err := w.Watch(r)
			if err != nil && !errors.Is(err, ErrNotCacheable) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				w.Pinning(token)
				if w.Pinned(token) == nil && verify {
					t.Errorf("%s: taken for pinned", name)
				}
				if verify && w.Unchanged(token) {
					t.Errorf("%s: taken for unchanged", name)
				}
				w.Unwatch(token)
			}
			runtime.ReadMemStats(&after)
			// The bitmap of the watched granules has 65,536 bits, with a counter each.
			if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 16<<20 {
				t.Errorf("%s: allocated %s", name, mem.FormatBytes(bytes))
			}
		}
	})
}

func TestWhatHasNoEndIsNotWatched(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		for _, r := range []mem.Range{{Start: 0x1000, End: math.MaxUint64}, {Start: math.MaxUint64 - 10, End: math.MaxUint64},
			{Start: 0x2000, End: 0x1000}} {
			if _, _, err := w.Watch(r); !errors.Is(err, mem.ErrOverflow) && !errors.Is(err, mem.ErrEmpty) {
				t.Errorf("%#x to %#x: %v", uint64(r.Start), uint64(r.End), err)
			}
		}
	})
}
