package pinned

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

func pageRange(t *rapid.T, pages int) mem.Range {
	a := rapid.IntRange(0, pages-1).Draw(t, "first page")
	b := rapid.IntRange(a+1, pages).Draw(t, "end page")
	return mem.Range{Start: mem.Addr(a) * mem.Addr(mem.PageSize), End: mem.Addr(b) * mem.Addr(mem.PageSize)}
}

func TestPinnedBytesAreTheUnionOfAllPins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var now int64
		u := NewUsage(0, Never)
		p := NewCounter(&now, nil)
		p.AddUsage(&u)
		type pin struct {
			r        mem.Range
			from, to int64
		}
		var all []pin
		for range rapid.IntRange(0, 12).Draw(t, "pins") {
			until := now + rapid.Int64Range(0, 30).Draw(t, "step")
			for p.NextNs() <= until {
				now = p.NextNs()
				p.Apply()
			}
			now = until
			x := pin{pageRange(t, 8), now + rapid.Int64Range(0, 20).Draw(t, "delay"), 0}
			x.to = x.from + rapid.Int64Range(0, 50).Draw(t, "length")
			p.Pin(x.from, x.r)
			p.Unpin(x.to, x.r)
			all = append(all, x)
		}
		for p.NextNs() < Never {
			now = p.NextNs()
			p.Apply()
		}
		const end = 1000
		mean := u.Close(end)
		var sum float64
		var peak int64
		for at := range int64(end) {
			var pinned [8]bool
			for _, x := range all {
				if x.from <= at && at < x.to {
					for i := x.r.Start / mem.Addr(mem.PageSize); i < x.r.End/mem.Addr(mem.PageSize); i++ {
						pinned[i] = true
					}
				}
			}
			var n int64
			for _, is := range pinned {
				if is {
					n += int64(mem.PageSize)
				}
			}
			sum += float64(n)
			peak = max(peak, n)
		}
		if mean*end != sum {
			t.Fatalf("mean %v, want %v", mean, sum/end)
		}
		// At one instant a pin may come before an unpin: the peak of usage may be
		// higher than that of any whole nanosecond, never lower.
		if u.Peak() < peak || p.total != 0 {
			t.Fatalf("peak %d, want at least %d; %d bytes left", u.Peak(), peak, p.total)
		}
	})
}

func TestSeriesKeepsMeanAndPeakHoweverLongTheRun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.Int64Range(0, 1<<20).Draw(t, "window from")
		to := from + rapid.Int64Range(1, 1<<30).Draw(t, "window")
		u := NewUsage(from, to)
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

func TestChangesComeByTimeThenInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h changes[int]
		type stored struct {
			at int64
			i  int
		}
		var all []stored
		for i := range rapid.IntRange(0, 40).Draw(t, "steps") {
			if len(all) > 0 && rapid.Bool().Draw(t, "pop") {
				first := 0
				for j, x := range all {
					if x.at < all[first].at {
						first = j
					}
				}
				if got := h.pop(); got != all[first].i {
					t.Fatalf("popped %d, want %d of %v", got, all[first].i, all)
				}
				all = append(all[:first], all[first+1:]...)
				continue
			}
			at := rapid.Int64Range(0, 9).Draw(t, "at")
			h.push(at, i)
			all = append(all, stored{at, i})
		}
	})
}

func TestSeriesReachesToTheEndOfTime(t *testing.T) {
	s := newSeries(0, math.MaxInt64)
	s.hold(0, 1<<20, 5)
	s.reach(math.MaxInt64-1, 9)
	s.hold(1<<20, math.MaxInt64, 7)
	if n := len(s.Peak); n == 0 || n > seriesBins || s.Peak[0] != 7 || s.Peak[n-1] != 9 {
		t.Fatalf("%d bins of %d ns", n, s.WidthNs)
	}
	for i := range s.Peak {
		if m := s.Mean(i); m < 6.9 || m > 7.1 {
			t.Errorf("mean of bin %d is %g, want 7", i, m)
		}
	}
}
