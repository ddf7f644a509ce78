package pinwheel

import (
	"testing"

	"pinwheel/internal/clock"
	"pinwheel/schedule"
)

// BenchmarkPath is what Acquire and Release cost a communication thread, and
// of what the cost consists; all in one process, so that differences hold. The
// helper sleeps: its own work belongs to another core.
func BenchmarkPath(b *testing.B) {
	const regions = 64
	warm := func(b *testing.B, helped bool) *Thread {
		_, t := start(b, Options{Policy: LeavePinned})
		for i := range regions {
			transfer(b, t, region(i), 0)
		}
		if helped {
			t.dq = newRing(t.m)
			b.Cleanup(func() { t.dq = nil }) // no helper knows it
		}
		return t
	}
	site := NewSite("bench")
	b.Run("cache-hit", func(b *testing.B) {
		t := warm(b, false)
		for i := 0; b.Loop(); i++ {
			ref, _, _ := t.local.Acquire(region(i%regions), access)
			t.local.Release(ref)
		}
	})
	b.Run("leave-pinned", func(b *testing.B) {
		t := warm(b, false)
		for i := 0; b.Loop(); i++ {
			var u Use
			_ = t.Acquire(&u, region(i%regions), access, 1, &site)
			t.Release(&u)
		}
	})
	b.Run("helped", func(b *testing.B) {
		t := warm(b, true)
		var e schedule.Event
		for i := 0; b.Loop(); i++ {
			var u Use
			_ = t.Acquire(&u, region(i%regions), access, 1, &site)
			t.Release(&u)
			if i%512 == 511 { // what the helper would do on its own core
				for t.dq.Pop(&e) {
				}
			}
		}
	})
	b.Run("helped-small", func(b *testing.B) { // below the threshold
		t := warm(b, true)
		for i := 0; b.Loop(); i++ {
			r := region(i % regions)
			r.End = r.Start + 8<<10
			var u Use
			_ = t.Acquire(&u, r, access, 1, &site)
			t.Release(&u)
		}
	})
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			clock.NowNs()
		}
	})
	b.Run("callers", func(b *testing.B) {
		var s Site
		for b.Loop() {
			s.Callers(0)
		}
	})
}
