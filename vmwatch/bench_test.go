package vmwatch

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/change"
	"pinwheel/mem"
)

// BenchmarkGeneration is the check on the send path.
func BenchmarkGeneration(b *testing.B) {
	for _, m := range []string{"fentry", "tps", "uffd"} {
		b.Run(m, func(b *testing.B) {
			w := openOrExplain(b, m)
			seen, changed := w.Generation(), 0
			for b.Loop() {
				if w.Generation() != seen {
					changed++
				}
			}
			b.ReportMetric(float64(changed), "changes")
		})
	}
}

// BenchmarkUnchanged is what a hit pays where notification isn't enough.
func BenchmarkUnchanged(b *testing.B) {
	for _, m := range []string{"uffd", "pfn"} {
		for _, n := range []uint64{64 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("%s/%s", m, mem.FormatBytes(n)), func(b *testing.B) {
				w := openOrExplain(b, m)
				r, free, err := scratch(n)
				if err != nil {
					b.Fatal(err)
				}
				defer free()
				s := change.Adopt(r, free)
				s.Fill(1)
				token, _, err := w.Watch(r)
				if err != nil {
					b.Fatal(err)
				}
				defer w.Unwatch(token)
				w.Pinning(token)
				if err := w.Pinned(token); err != nil {
					b.Fatal(err)
				}
				for b.Loop() {
					w.Unchanged(token)
				}
			})
		}
	}
}

// BenchmarkDoubt is what a hit under userfaultfd pays in a program that takes a page fault between two of them, with a
// kernel that has MADV_GUARD_INSTALL and one that has not, and how many must register again.
func BenchmarkDoubt(b *testing.B) {
	for name, open := range map[string]func(testing.TB) *Watcher{
		"guards": func(b testing.TB) *Watcher { return openOrExplain(b, "uffd") }, "none": openWithoutGuards,
	} {
		for _, n := range []uint64{64 << 10, 256 << 10, 1 << 20, 32 << 20} {
			b.Run(fmt.Sprintf("%s/%s", name, mem.FormatBytes(n)), func(b *testing.B) {
				w := open(b)
				r, free, err := scratch(n)
				if err != nil {
					b.Fatal(err)
				}
				defer free()
				s := change.Adopt(r, free)
				s.Fill(1)
				token, _, err := w.Watch(r)
				if err != nil {
					b.Fatal(err)
				}
				defer w.Unwatch(token)
				w.Pinning(token)
				if err := w.Pinned(token); err != nil {
					b.Fatal(err)
				}
				other, otherFree, err := scratch(mem.PageSize)
				if err != nil {
					b.Fatal(err)
				}
				defer otherFree()
				page, doubtful := other.Bytes(), 0
				for b.Loop() {
					b.StopTimer()
					if err := unix.Madvise(page, unix.MADV_DONTNEED); err != nil {
						b.Fatal(err)
					}
					page[0] = 1 // a page fault
					b.StartTimer()
					if !w.Unchanged(token) {
						doubtful++
					}
				}
				b.ReportMetric(float64(doubtful)/float64(b.N), "doubtful/op")
			})
		}
	}
}

// BenchmarkDrain is one watched change and its report.
func BenchmarkDrain(b *testing.B) {
	for _, m := range []string{"fentry", "tps", "tp", "uffd"} {
		b.Run(m, func(b *testing.B) {
			w := openOrExplain(b, m)
			s, err := change.Anonymous(16)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Free()
			token, _, err := w.Watch(s.Range)
			if err != nil {
				b.Fatal(err)
			}
			defer w.Unwatch(token)
			for b.Loop() {
				unix.RawSyscall(unix.SYS_MADVISE, uintptr(s.Range.Start), uintptr(mem.PageSize), unix.MADV_DONTNEED)
				w.Drain(func(mem.Range) {})
			}
		})
	}
}
