package pinned

// Usage is a byte count over time: its peak, its mean, and a Series of bounded
// length.
type Usage struct {
	// LateNs is how much later every given time is than the time that it stands for.
	LateNs int64
	// EndNs is the time after which nothing counts; 0 while nobody knows it.
	EndNs int64

	bytes    int64
	peak     int64
	integral float64 // byte nanoseconds until lastNs
	lastNs   int64
	series   Series
}

// NewUsage returns a Usage of no bytes, with a Series over the window [fromNs, toNs).
func NewUsage(fromNs, toNs int64) Usage { return Usage{series: newSeries(fromNs, toNs)} }

// Peak returns the most bytes so far.
func (u *Usage) Peak() int64 { return u.peak }

// Series returns the count over the window. It changes until Close.
func (u *Usage) Series() *Series { return &u.series }

// Change adds delta bytes at nowNs. Times must not decrease.
func (u *Usage) Change(nowNs, delta int64) {
	nowNs -= u.LateNs
	u.advance(nowNs)
	u.bytes += delta
	if u.EndNs == 0 || nowNs < u.EndNs {
		u.peak = max(u.peak, u.bytes)
		u.series.reach(nowNs, u.bytes)
	}
}

func (u *Usage) advance(nowNs int64) {
	if u.EndNs > 0 {
		nowNs = min(nowNs, u.EndNs)
	}
	if nowNs > u.lastNs {
		u.integral += float64(u.bytes) * float64(nowNs-u.lastNs)
		u.series.hold(u.lastNs, nowNs, u.bytes)
		u.lastNs = nowNs
	}
}

// Close counts until the end and returns the mean number of bytes since time 0.
func (u *Usage) Close(endNs int64) float64 {
	u.EndNs = endNs
	u.advance(endNs)
	u.series.ToNs = min(u.series.ToNs, endNs)
	if endNs <= 0 {
		return 0
	}
	return u.integral / float64(endNs)
}
