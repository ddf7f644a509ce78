package vmwatch

import (
	"slices"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
)

func TestUnwatchedMemoryDoesNotMoveTheGeneration(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp", "uffd"} {
		t.Run(m, func(t *testing.T) {
			w := openOrExplain(t, m)
			watched, _ := subject(t)
			pin(t, w, watched.Range)
			w.Drain(func(mem.Range) {})
			// Far from everything else: the interest of BPF has a grain of 2 MiB.
			far := mem.Addr(0x2100_0000_0000)
			if _, err := mmapAt(far, mem.PageSize, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED_NOREPLACE, -1); err != nil {
				t.Fatal(err)
			}
			before := w.Generation()
			if _, _, errno := unix.RawSyscall(unix.SYS_MUNMAP, uintptr(far), uintptr(mem.PageSize), 0); errno != 0 {
				t.Fatal(errno)
			}
			if after := w.Generation(); after != before {
				var what []mem.Range
				w.Drain(func(r mem.Range) { what = append(what, r) })
				for _, r := range what {
					if r.Start == far {
						t.Errorf("generation %d became %d for memory that nobody watches", before, after)
					}
				}
			}
		})
	}
}

// C code counts itself in, as the recorder of calls does, and asks for the changes up to a Generation.
func TestChangesComeOneForEachStepOfTheGeneration(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp"} {
		t.Run(m, func(t *testing.T) {
			w := openOrExplain(t, m)
			s, pages := subject(t)
			w.source.note.(interested).interests().add(s.Range)
			defer w.Uninterest(s.Range)
			from := w.Generation()
			for i := range uint64(3) {
				unmap(t, s, pages(2*i, 2*i+1))
			}
			until := w.Generation()
			var starts []mem.Addr
			steps := uint64(0)
			next, all := w.Changes(from, func(r mem.Range) {
				if steps++; s.Range.Contains(r) {
					starts = append(starts, r.Start)
				}
			})
			if !all || next < until || steps != next-from {
				t.Errorf("%d steps from %d to %d, of all %v; the generation was %d", steps, from, next, all, until)
			}
			if want := []mem.Addr{pages(0, 1).Start, pages(2, 3).Start, pages(4, 5).Start}; !slices.Equal(slices.Compact(starts), want) { // each at its begin and at its end
				t.Errorf("unmapped at %x, want %x", starts, want)
			}
		})
	}
	w := openOrExplain(t, "none")
	if _, all := w.Changes(0, func(mem.Range) {}); all {
		t.Error("a watcher that notices nothing claims to know of all changes")
	}
}

func TestGenerationMovesBeforeTheCallReturns(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp", "uffd"} {
		t.Run(m, func(t *testing.T) {
			w := openOrExplain(t, m)
			s, _ := subject(t)
			pin(t, w, s.Range)
			for range 100 {
				before := w.Generation()
				if _, _, errno := unix.RawSyscall(unix.SYS_MADVISE, uintptr(s.Range.Start), uintptr(s.Range.Len()),
					unix.MADV_DONTNEED); errno != 0 {
					t.Fatal(errno)
				}
				if w.Generation() == before {
					t.Fatal("madvise returned with the old generation")
				}
			}
			if atomic.LoadUint64(w.Word()) != w.Generation() {
				t.Error("the word isn't the generation")
			}
		})
	}
}

func TestOverrunDropsEverything(t *testing.T) {
	for _, m := range []string{"tps", "uffd"} {
		t.Run(m, func(t *testing.T) {
			w := openOrExplain(t, m)
			s, pages := subject(t)
			pin(t, w, s.Range)
			w.Drain(func(mem.Range) {})
			for range RecordCount {
				if _, _, errno := unix.RawSyscall(unix.SYS_MADVISE, uintptr(s.Range.Start), uintptr(mem.PageSize),
					unix.MADV_DONTNEED); errno != 0 {
					t.Fatal(errno)
				}
			}
			all := false
			g := w.Drain(func(r mem.Range) { all = all || r.Overlaps(pages(8, 9)) })
			if !all {
				t.Error("changes were lost and the rest wasn't dropped")
			}
			if g != w.Generation() {
				t.Errorf("drained up to %d of %d", g, w.Generation())
			}
		})
	}
}
