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
