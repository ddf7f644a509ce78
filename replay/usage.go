package replay

// usage is a byte count over virtual time: its peak, its integral, and a
// series of bounded length.
type usage struct {
	bytes    int64
	peak     int64
	integral float64 // byte nanoseconds until lastNs
	lastNs   int64
	lateNs   int64 // every time given is later than what it stands for by this
	endNs    int64 // nothing counts after it; 0 while it is not known
	series   Series
}

// change books a change of the count.
func (u *usage) change(nowNs, delta int64) {
	nowNs -= u.lateNs
	u.advance(nowNs)
	u.bytes += delta
	if u.endNs == 0 || nowNs < u.endNs {
		u.peak = max(u.peak, u.bytes)
		u.series.reach(max(nowNs, 0), u.bytes)
	}
}

func (u *usage) advance(nowNs int64) {
	if u.endNs > 0 {
		nowNs = min(nowNs, u.endNs)
	}
	if nowNs > u.lastNs {
		u.integral += float64(u.bytes) * float64(nowNs-u.lastNs)
		u.series.hold(u.lastNs, nowNs, u.bytes)
		u.lastNs = nowNs
	}
}

// close books the time until the end and returns the mean since time 0.
func (u *usage) close(endNs int64) float64 {
	u.endNs, u.series.EndNs = endNs, endNs
	u.advance(endNs)
	if endNs <= 0 {
		return 0
	}
	return u.integral / float64(endNs)
}

// Series is a byte count over time, in bins of equal width: its maximum and
// the sum of byte nanoseconds in each.
type Series struct {
	WidthNs int64 // of a bin
	EndNs   int64 // of the run; the last bin ends here
	Peak    []int64
	sum     []float64
}

// seriesBins bounds a Series: when time outgrows it, neighbouring bins are
// merged and bins become twice as wide.
const (
	seriesBins    = 2048
	seriesStartNs = 1 << 14 // 16 us
)

// Mean is the time-weighted mean of a bin.
func (s *Series) Mean(bin int) float64 {
	return s.sum[bin] / float64(max(1, min(s.WidthNs, s.EndNs-int64(bin)*s.WidthNs)))
}

// bin makes room for time t and returns its bin.
func (s *Series) bin(t int64) int {
	if s.WidthNs == 0 {
		s.WidthNs = seriesStartNs
	}
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

// reach books that the count is v at t, for however short.
func (s *Series) reach(t, v int64) {
	i := s.bin(t)
	s.Peak[i] = max(s.Peak[i], v)
}

// hold books that the count is v during [from, to).
func (s *Series) hold(from, to, v int64) {
	s.bin(to)
	for from < to {
		i := s.bin(from)
		end := min(to, int64(i+1)*s.WidthNs)
		s.sum[i] += float64(v) * float64(end-from)
		s.Peak[i] = max(s.Peak[i], v)
		from = end
	}
}
