package replay

// usage is a byte count over time: its peak, its integral, and a series of
// bounded length for figures.
type usage struct {
	bytes    int64
	peak     int64
	integral float64 // byte nanoseconds until last
	last     int64
	lateNs   int64 // times given are late by this
	endNs    int64 // nothing counts after it; 0: no end yet
	series   series
}

// change books a change of the count at now.
func (u *usage) change(now, delta int64) {
	now -= u.lateNs
	u.advance(now)
	u.bytes += delta
	if u.endNs == 0 || now < u.endNs {
		u.peak = max(u.peak, u.bytes)
		u.series.peak(max(now, 0), u.bytes)
	}
}

func (u *usage) advance(now int64) {
	if u.endNs > 0 {
		now = min(now, u.endNs)
	}
	if now > u.last {
		u.integral += float64(u.bytes) * float64(now-u.last)
		u.series.add(u.last, now, u.bytes)
		u.last = now
	}
}

// average is the mean over [0, endNs].
func (u *usage) average() float64 {
	if u.endNs <= 0 {
		return 0
	}
	u.advance(u.endNs)
	return u.integral / float64(u.endNs)
}

// seriesBins is the length of a series; it never holds more.
const seriesBins = 2048

// series keeps the mean and the maximum of a count in bins of equal width.
// When time outgrows the last bin, neighbours are merged and bins become
// twice as wide.
type series struct {
	widthNs int64
	sum     []float64 // byte nanoseconds
	max     []int64
}

const seriesStartNs = 1 << 14 // 16 us

func (s *series) bin(t int64) int {
	if s.widthNs == 0 {
		s.widthNs = seriesStartNs
	}
	for t/s.widthNs >= seriesBins {
		n := (len(s.sum) + 1) / 2
		for i := range n {
			j := min(2*i+1, len(s.sum)-1)
			sum := s.sum[2*i]
			if j > 2*i {
				sum += s.sum[j]
			}
			s.sum[i], s.max[i] = sum, max(s.max[2*i], s.max[j])
		}
		s.sum, s.max = s.sum[:n], s.max[:n]
		s.widthNs *= 2
	}
	i := int(t / s.widthNs)
	for len(s.sum) <= i {
		s.sum, s.max = append(s.sum, 0), append(s.max, 0)
	}
	return i
}

func (s *series) peak(t, v int64) {
	i := s.bin(t)
	s.max[i] = max(s.max[i], v)
}

// add accounts for the value v during [from, to).
func (s *series) add(from, to, v int64) {
	s.bin(to)
	for from < to {
		i := s.bin(from)
		end := min(to, int64(i+1)*s.widthNs)
		s.sum[i] += float64(v) * float64(end-from)
		s.max[i] = max(s.max[i], v)
		from = end
	}
}
