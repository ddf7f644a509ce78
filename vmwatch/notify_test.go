package vmwatch

import (
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
			for range bpfSlots {
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
