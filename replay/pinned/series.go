package pinned

// Series is a byte count over a window of time, in bins of equal width.
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

func newSeries(fromNs, toNs int64) Series {
	return Series{FromNs: fromNs, ToNs: toNs, WidthNs: seriesStartNs}
}

// Mean is the time-weighted mean of a bin.
func (s *Series) Mean(bin int) float64 {
	inWindow := s.ToNs - s.FromNs - int64(bin)*s.WidthNs
	return s.sum[bin] / float64(max(1, min(s.WidthNs, inWindow)))
}

// bin makes room for a time since FromNs and returns its bin.
func (s *Series) bin(t int64) int {
	for t/s.WidthNs >= seriesBins {
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
	i := int(t / s.WidthNs)
	for len(s.sum) <= i {
		s.sum, s.Peak = append(s.sum, 0), append(s.Peak, 0)
	}
	return i
}

// reach notes that the count is v at t, for however short.
func (s *Series) reach(t, v int64) {
	if t < s.FromNs || t >= s.ToNs {
		return
	}
	i := s.bin(t - s.FromNs)
	s.Peak[i] = max(s.Peak[i], v)
}

// hold notes that the count is v during [from, to).
func (s *Series) hold(from, to, v int64) {
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
