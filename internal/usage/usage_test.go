package usage

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func TestSeriesKeepsMeanAndPeakHoweverLongTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 1<<20).Draw(t, "window from")
		to := from + rapid.Int64Range(1, 1<<30).Draw(t, "window")
		u := New(from, to)
		var now, value, peak int64
		var sum float64
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			next := now + rapid.Int64Range(0, 1<<26).Draw(t, "step")
			a, b := max(now, from), min(next, to)
			if a < b {
				sum += float64(value) * float64(b-a)
				peak = max(peak, value)
			}
			now = next
			to := rapid.Int64Range(0, 1<<30).Draw(t, "value")
			u.Change(now, to-value)
			value = to
		}
		u.Close(now)
		s := u.Series()
		if len(s.Peak) > seriesBins {
			t.Fatalf("%d bins", len(s.Peak))
		}
		var got float64
		var gotPeak int64
		for i := range s.Peak {
			width := min(s.WidthNs, s.ToNs-s.FromNs-int64(i)*s.WidthNs)
			got += s.Mean(i) * float64(max(width, 1))
			gotPeak = max(gotPeak, s.Peak[i])
		}
		if d := got - sum; d > 1e-9*sum || d < -1e-9*sum {
			t.Fatalf("bins add up to %v byte ns, want %v", got, sum)
		}
		if gotPeak < peak {
			t.Fatalf("peak %d, want at least %d", gotPeak, peak)
		}
	})
}

func TestSeriesReachesToTheEndOfTime(t *testing.T) {
	s := NewSeries(0, math.MaxInt64)
	s.Hold(0, 1<<20, 5)
	s.Reach(math.MaxInt64-1, 9)
	s.Hold(1<<20, math.MaxInt64, 7)
	if n := len(s.Peak); n == 0 || n > seriesBins || s.Peak[0] != 7 || s.Peak[n-1] != 9 {
		t.Fatalf("%d bins of %d ns", n, s.WidthNs)
	}
	for i := range s.Peak {
		if m := s.Mean(i); m < 6.9 || m > 7.1 {
			t.Errorf("mean of bin %d is %g, want 7", i, m)
		}
	}
}
