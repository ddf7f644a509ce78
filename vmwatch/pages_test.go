package vmwatch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/mem"
)

// mapNothing maps address space as drivers do for memory of their devices: no page of the process is there.
func mapNothing(t testing.TB, n uint64) mem.Range {
	t.Helper()
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(n), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.MunmapPtr(at, uintptr(n)); err != nil {
			t.Error(err)
		}
	})
	return mem.Range{Start: mem.Addr(uintptr(at)), End: mem.Addr(uintptr(at)) + mem.Addr(n)}
}

// pinned is what Pinned says of a range that a device has accepted.
func pinned(t *testing.T, w *Watcher, r mem.Range) error {
	t.Helper()
	token, _, err := w.Watch(r)
	if err != nil {
		return err // that will do, too
	}
	defer w.Unwatch(token)
	w.Pinning(token)
	return w.Pinned(token)
}

func TestRangeWithoutPagesOfTheProcessIsRefused(t *testing.T) {
	underEach(t, func(t *testing.T, w *Watcher) {
		var said []string
		w.onRefused = func(message string) { said = append(said, message) }
		tells := w.Mechanism() == TPS || w.Mechanism() == TP || w.Mechanism() == Fentry
		for range 2 {
			r := mapNothing(t, 4<<20)
			if err := pinned(t, w, r); err == nil || tells && !errors.Is(err, mem.ErrChanged) {
				t.Errorf("memory that may be a device's, or about to be freed: %v", err)
			}
			if err := pinned(t, w, r); err == nil ||
				tells && !(errors.Is(err, ErrForeign) && errors.Is(err, ErrNotCacheable)) {
				t.Errorf("memory that is a device's: %v", err)
			}
		}
		if tells && len(said) != 1 {
			t.Errorf("said %q", said)
		}
	})
}

// munmap(2) tells before it takes the pages, and after it. Whoever watches and registers the range in between may see
// neither.
func TestRangesThatAreAboutToBeFreedAreNotTakenForADevices(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp"} {
		t.Run(m, func(t *testing.T) {
			w := openOrExplain(t, m)
			w.onRefused = func(message string) { t.Error(message) }
			for range 2 * maxAbsent {
				if err := pinned(t, w, mapNothing(t, mem.PageSize)); !errors.Is(err, mem.ErrChanged) {
					t.Fatal(err)
				}
			}
			if len(w.absent) > maxAbsent {
				t.Errorf("%d ranges are remembered", len(w.absent))
			}
			s, _ := subject(t)
			for range 2 { // it has pages in between
				if err := unix.Madvise(s.Range.Bytes(), unix.MADV_DONTNEED); err != nil {
					t.Fatal(err)
				}
				if err := pinned(t, w, s.Range); !errors.Is(err, mem.ErrChanged) {
					t.Error(err)
				}
				s.Fill(1)
				if err := pinned(t, w, s.Range); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestRangeThatWasFreedIsNotTakenForADevices(t *testing.T) {
	for _, m := range []string{"fentry", "tps", "tp"} {
		t.Run(m, func(t *testing.T) {
			w := openOrExplain(t, m)
			said := 0
			w.onRefused = func(string) { said++ }
			s, _ := subject(t)
			token, verify, err := w.Watch(s.Range)
			if err != nil || verify {
				t.Fatal(verify, err)
			}
			defer w.Unwatch(token)
			unmap(t, s, s.Range)
			if err := w.Pinned(token); !errors.Is(err, mem.ErrChanged) || said != 0 {
				t.Errorf("%v, said %d times", err, said)
			}
		})
	}
}

func TestOnePageOfADeviceIsFoundInALongRange(t *testing.T) {
	s, err := change.Anonymous(2*pagesAtOnce + 3)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	s.Fill(1)
	p, err := openPages()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for name, areOurs := range map[string]func(mem.Range) bool{"scan": p.areOurs, "read": p.areThere} {
		if !areOurs(s.Range) {
			t.Fatalf("%s: pages that were just written are no pages of ours", name)
		}
		for _, n := range []uint64{0, 1, pagesAtOnce - 1, pagesAtOnce, 2*pagesAtOnce + 2} {
			start := s.Range.Start + mem.Addr(n*mem.PageSize)
			one := mem.Range{Start: start, End: start + mem.Addr(mem.PageSize)}
			if err := unix.Madvise(one.Bytes(), unix.MADV_DONTNEED); err != nil {
				t.Fatal(err)
			}
			if areOurs(s.Range) {
				t.Errorf("%s: page %d is missing, and nobody sees it", name, n)
			}
			one.Bytes()[0] = 1
		}
	}
}

// A driver maps memory of its device (VM_PFNMAP) as the kernel maps its clocks: it can be read, and is not the process's.
func TestPagesOfADriverAreNotOurs(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^([0-9a-f]+)-.* \[vvar\]$`).FindSubmatch(maps)
	if line == nil {
		t.Skip("the kernel maps no clocks")
	}
	start, err := strconv.ParseUint(string(line[1]), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	clock := mem.Range{Start: mem.Addr(start), End: mem.Addr(start) + mem.Addr(mem.PageSize)}
	if bytes.Equal(clock.Bytes(), make([]byte, mem.PageSize)) { // which brings it in
		t.Skip("the kernel's clock doesn't run")
	}
	p, err := openPages()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for name, areOurs := range map[string]func(mem.Range) bool{"scan": p.areOurs, "read": p.areThere} {
		if areOurs(clock) {
			t.Errorf("%s: they are", name)
		}
	}
}

// A read-only buffer that was never touched has the page of zeros.
func TestReadOnlyPagesAreOurs(t *testing.T) {
	s, err := change.Anonymous(4)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	if err := unix.Mprotect(s.Bytes(), unix.PROT_READ); err != nil {
		t.Fatal(err)
	}
	p, err := openPages()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	const populateRead = 22 // MADV_POPULATE_READ
	if err := unix.Madvise(s.Bytes(), populateRead); err != nil {
		t.Skip("needs Linux 5.14: ", err)
	}
	if !p.areOurs(s.Range) {
		t.Error("they are not")
	}
}

func BenchmarkPinned(b *testing.B) {
	w := openOrExplain(b, "bpf")
	for _, pages := range []uint64{16, 256, 4096, 65536} {
		s, err := change.Anonymous(pages)
		if err != nil {
			b.Fatal(err)
		}
		s.Fill(1)
		token, _, err := w.Watch(s.Range)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(pages, "pages"), func(b *testing.B) {
			for b.Loop() {
				if err := w.Pinned(token); err != nil {
					b.Fatal(err)
				}
			}
		})
		w.Unwatch(token)
		s.Free()
	}
}
