package clock

import "testing"

// A counter of 2.4 GHz, each reading 20 ns after the one before.
func TestTicksBecomeTimesOfTheClock(t *testing.T) {
	const perNs = 2.4
	var ns float64 = 1e15
	read := func() uint64 { ns += 20; return uint64(ns * perNs) }
	clock := NewTicks(read, func() int64 { return int64(ns) })
	for _, seconds := range []float64{1e-6, 1e-3, 0.5, 1, 7, 100, 100, 3600} {
		ns += seconds * 1e9
		at, want := read(), int64(ns)
		if got := clock.Ns(at); got < want-100 || got > want+100 {
			t.Errorf("after %g s more: %d ns off", seconds, got-want)
		}
		if got := clock.NsPerTick() * perNs; got < 0.999 || got > 1.001 {
			t.Errorf("after %g s more: %g ns a tick, want %g", seconds, got/perNs, 1/perNs)
		}
		// What is told late: a use that began a millisecond ago.
		if got, want := clock.Ns(at-uint64(1e6*perNs)), want-1_000_000; got < want-100 || got > want+100 {
			t.Errorf("after %g s more, of a millisecond ago: %d ns off", seconds, got-want)
		}
	}
}
