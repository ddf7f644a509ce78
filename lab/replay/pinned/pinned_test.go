package pinned

import (
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/usage"
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
		u := usage.New(0, Never)
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
		if u.Peak() < peak || p.pages.Bytes() != 0 {
			t.Fatalf("peak %d, want at least %d; %d bytes left", u.Peak(), peak, p.pages.Bytes())
		}
	})
}

func TestChangesComeByTimeThenInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := int64(-1)
		p := NewCounter(&now, nil)
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
				if got, _ := p.later.DeleteMin(); got.rng.Start != mem.Addr(all[first].i) {
					t.Fatalf("came first: %+v, want %d of %v", got, all[first].i, all)
				}
				all = append(all[:first], all[first+1:]...)
				continue
			}
			at := rapid.Int64Range(0, 9).Draw(t, "at")
			p.Pin(at, mem.Range{Start: mem.Addr(i), End: mem.Addr(i + 1)})
			all = append(all, stored{at, i})
		}
	})
}
