package vmwatch

import (
	"errors"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// pinnedRange is a range as a cache would hold it.
type pinnedRange struct {
	r      mem.Range
	token  uint64
	verify bool
}

func pin(t *testing.T, w *Watcher, r mem.Range) pinnedRange {
	t.Helper()
	p := pinnedRange{r: r}
	var err error
	if p.token, p.verify, err = w.Watch(r); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Unwatch(p.token) })
	w.Pinning(p.token)
	release, err := hold(change.Adopt(r, nil).Bytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	if err := w.Pinned(p.token); err != nil {
		t.Fatal(err)
	}
	return p
}

// survivors tells which ranges a cache would still hand out.
func survivors(w *Watcher, ranges ...pinnedRange) []bool {
	alive := make([]bool, len(ranges))
	for i, p := range ranges {
		alive[i] = !p.verify || w.Unchanged(p.token)
	}
	w.Drain(func(r mem.Range) {
		for i, p := range ranges {
			alive[i] = alive[i] && !r.Overlaps(p.r)
		}
	})
	return alive
}

// subject maps whole pages; tests name parts of it by page numbers.
func subject(t *testing.T) (s *change.Subject, pages func(from, to uint64) mem.Range) {
	t.Helper()
	s, err := change.Anonymous(16)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	return s, func(from, to uint64) mem.Range {
		return mem.Range{Start: s.Range.Start + mem.Addr(from*mem.PageSize), End: s.Range.Start + mem.Addr(to*mem.PageSize)}
	}
}

func unmap(t *testing.T, s *change.Subject, r mem.Range) {
	t.Helper()
	if err := s.Unmap(r); err != nil {
		t.Fatal(err)
	}
}

// Figure 3 of the dreg paper: two buffers share the page that is freed.
func TestUnmappingAPageDropsEveryRegistrationInIt(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		s, _ := subject(t)
		a := pin(t, w, mem.Range{Start: s.Range.Start, End: s.Range.Start + 100})
		b := pin(t, w, mem.Range{Start: s.Range.Start + 1000, End: s.Range.Start + 1100})
		unmap(t, s, s.Range)
		if alive := survivors(w, a, b); alive[0] || alive[1] {
			t.Errorf("still handed out: %v", alive)
		}
	})
}

// Figure 4 of the dreg paper: the middle of three pages is freed.
func TestPartialUnmapDropsExactlyWhatOverlaps(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		dropped := 0
		testwait.Until(t, "a try in which Go's runtime faults in no page", func() bool {
			s, pages := subject(t)
			defer s.Free()
			// Under userfaultfd a page fault of anyone drops everything: such a try says nothing of neighbours.
			before := pageFaults()
			first, across, middle, last := pin(t, w, pages(0, 1)), pin(t, w, pages(0, 2)),
				pin(t, w, pages(1, 2)), pin(t, w, pages(2, 3))
			w.Drain(func(mem.Range) {})
			unmap(t, s, pages(1, 2))
			alive := survivors(w, first, across, middle, last)
			quiet := pageFaults() == before
			if alive[1] || alive[2] {
				t.Fatalf("still handed out: %v", alive)
			}
			if quiet && !(alive[0] && alive[3]) {
				dropped++ // or a fault is under way, which the kernel counts at its end
			}
			if dropped == 20 {
				t.Fatalf("pages beside the freed one were dropped: %v", alive)
			}
			return alive[0] && alive[3]
		})
	})
}

// A mapping that took the place of a smaller registration's memory must not
// vouch for it because a larger registration was made there since.
func TestNewRegistrationDoesNotReviveAnOlderOneInside(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		s, pages := subject(t)
		inner := pin(t, w, pages(0, 4))
		o, err := change.Anonymous(16)
		if err != nil {
			t.Fatal(err)
		}
		// Present pages are moved over: nothing faults afterwards.
		if _, _, errno := unix.RawSyscall6(unix.SYS_MREMAP, uintptr(o.Range.Start),
			uintptr(o.Range.Len()), uintptr(o.Range.Len()),
			unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED, uintptr(s.Range.Start), 0); errno != 0 {
			t.Fatal(errno)
		}
		outer := pin(t, w, s.Range)
		if alive := survivors(w, inner); alive[0] {
			t.Error("the older registration is still handed out")
		}
		_ = outer
	})
}

func TestHandlerMayAllocateAndCollect(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		s, _ := subject(t)
		pin(t, w, s.Range)
		unmap(t, s, s.Range)
		var keep []byte
		w.Drain(func(mem.Range) {
			keep = make([]byte, 4<<20)
			runtime.GC()
		})
		runtime.KeepAlive(keep)
	})
}

func TestMemoryOthersCanChangeIsVerifiedOrRefused(t *testing.T) {
	s, err := change.SharedFile(16)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	for _, m := range []string{"tps", "tp", "uffd"} {
		t.Run(m, func(t *testing.T) {
			w := openOrExplain(t, m)
			for _, frames := range []*frameReader{w.frames, nil} {
				w.frames = frames
				token, verify, err := w.Watch(s.Range)
				if frames == nil && !errors.Is(err, ErrNotCacheable) {
					t.Errorf("without frame numbers: got %v, want ErrNotCacheable", err)
				}
				if frames != nil && (err != nil || !verify) {
					t.Errorf("with frame numbers: verify %v, %v", verify, err)
				}
				w.Unwatch(token)
			}
		})
	}
}

func TestRangesThatCannotBeWatched(t *testing.T) {
	w := openOrExplain(t, "uffd")
	if _, _, err := w.Watch(mem.Range{}); !errors.Is(err, mem.ErrEmpty) {
		t.Errorf("empty: got %v", err)
	}
	r, free, err := scratch(4 * mem.PageSize)
	if err != nil {
		t.Fatal(err)
	}
	free()
	w.frames = nil
	if _, _, err := w.Watch(r); !errors.Is(err, ErrNotCacheable) {
		t.Errorf("unmapped: got %v", err)
	}
}

func TestEveryWatcherOfTheProcessLearnsOfAChange(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		other := openOrExplain(t, w.Mechanism().String())
		s, _ := subject(t)
		a := pin(t, w, s.Range)
		b := pin(t, other, s.Range)
		unmap(t, s, s.Range)
		if survivors(w, a)[0] || survivors(other, b)[0] {
			t.Error("one of two instances missed the change")
		}
	})
}

func TestClosingAWatcherLeavesTheOthersAtWork(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		s, _ := subject(t)
		first := open(t, w.Mechanism().String())
		if _, _, err := first.Watch(s.Range); err != nil {
			t.Fatal(err)
		}
		a := pin(t, w, s.Range)
		if err := first.Close(); err != nil { // with a range still watched
			t.Fatal(err)
		}
		unmap(t, s, s.Range)
		if survivors(w, a)[0] {
			t.Error("the change was missed")
		}
	})
}
