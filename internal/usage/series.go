package usage

import "slices"

// Series is a count over a window of time, in bins of equal width.
type Series struct {
	FromNs, ToNs int64   // the window, ending with the run at the latest
	WidthNs      int64   // of a bin
	Peak         []int64 // maximum in each bin
	sum          []float64
}

// seriesBins bounds a Series: when time outgrows it, neighbouring bins are
// merged and bins become twice as wide.
const (
	seriesBins    = 2048
	seriesStartNs = 1 << 14 // 16 us
)

// NewSeries returns an empty Series over the window [fromNs, toNs).
func NewSeries(fromNs, toNs int64) Series {
	return Series{FromNs: fromNs, ToNs: toNs, WidthNs: seriesStartNs}
}

// Touch provides the memory of all bins, so that counting causes no page fault later.
func (s *Series) Touch() {
	s.Peak, s.sum = touched(s.Peak), touched(s.sum)
}

func touched[T any](bins []T) []T {
	bins = slices.Grow(bins, seriesBins-len(bins))
	clear(bins[len(bins):cap(bins)])
	return bins
}

// Mean is the time-weighted mean of a bin.
func (s *Series) Mean(bin int) float64 {
	inWindow := s.ToNs - s.FromNs - int64(bin)*s.WidthNs
	return s.sum[bin] / float64(max(1, min(s.WidthNs, inWindow)))
}

// bin makes room for a time since FromNs and returns its bin.
func (s *Series) bin(t int64) int {
	for t/s.WidthNs >= seriesBins {
		s.halve()
	}
	i := int(t / s.WidthNs)
	for len(s.sum) <= i {
		s.sum, s.Peak = append(s.sum, 0), append(s.Peak, 0)
	}
	return i
}

// halve merges neighbouring bins.
func (s *Series) halve() {
	n := (len(s.sum) + 1) / 2
	for i := range n {
		sum, peak := s.sum[2*i], s.Peak[2*i]
		if 2*i+1 < len(s.sum) {
			sum, peak = sum+s.sum[2*i+1], max(peak, s.Peak[2*i+1])
		}
		s.sum[i], s.Peak[i] = sum, peak
	}
	s.sum, s.Peak = s.sum[:n], s.Peak[:n]
	s.WidthNs *= 2
}

// Until returns a copy that ends at toNs and has at most so many bins.
func (s *Series) Until(toNs int64, bins int) Series {
	c := *s
	c.ToNs, c.sum, c.Peak = min(c.ToNs, toNs), slices.Clone(c.sum), slices.Clone(c.Peak)
	for len(c.sum) > bins {
		c.halve()
	}
	return c
}

// Reach notes that the count is v at t, for however short.
func (s *Series) Reach(t, v int64) {
	if t < s.FromNs || t >= s.ToNs {
		return
	}
	i := s.bin(t - s.FromNs)
	s.Peak[i] = max(s.Peak[i], v)
}

// Hold notes that the count is v during [from, to).
func (s *Series) Hold(from, to, v int64) {
	from, to = max(from, s.FromNs)-s.FromNs, min(to, s.ToNs)-s.FromNs
	if from >= to {
		return
	}
	s.bin(to - 1)
	for from < to {
		i := s.bin(from)
		end := from + min(to-from, s.WidthNs-from%s.WidthNs)
		s.sum[i] += float64(v) * float64(end-from)
		s.Peak[i] = max(s.Peak[i], v)
		from = end
	}
}

// Add counts n events at t, which Total returns. A Series is held or added to, not both.
func (s *Series) Add(t, n int64) {
	if t >= s.FromNs && t < s.ToNs {
		s.sum[s.bin(t-s.FromNs)] += float64(n)
	}
}

// Total is how many events were added in a bin.
func (s *Series) Total(bin int) float64 { return s.sum[bin] }
