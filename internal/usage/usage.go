// Package usage follows a count over time, such as the bytes that are pinned: its peak, its
// mean, and a series of bounded length, however long the time. It reads no clock. Nothing
// here is safe for concurrent use.
package usage

// Usage is a count over time: its peak, its mean, and a Series of bounded length.
type Usage struct {
	// LateNs is how much later every given time is than the time that it stands for.
	LateNs int64
	// EndNs is the time after which nothing counts; 0 while nobody knows it.
	EndNs int64

	count    int64
	peak     int64
	integral float64 // of the count, over nanoseconds, until lastNs
	lastNs   int64
	series   Series
}

// New returns a Usage of nothing, with a Series over the window [fromNs, toNs).
func New(fromNs, toNs int64) Usage { return Usage{series: NewSeries(fromNs, toNs)} }

// Peak returns the highest count so far.
func (u *Usage) Peak() int64 { return u.peak }

// Series returns the count over the window. It changes until Close.
func (u *Usage) Series() *Series { return &u.series }

// Change adds delta to the count at nowNs. Times must not decrease.
func (u *Usage) Change(nowNs, delta int64) {
	nowNs -= u.LateNs
	u.advance(nowNs)
	u.count += delta
	if u.EndNs == 0 || nowNs < u.EndNs {
		u.peak = max(u.peak, u.count)
		u.series.Reach(nowNs, u.count)
	}
}

func (u *Usage) advance(nowNs int64) {
	if u.EndNs > 0 {
		nowNs = min(nowNs, u.EndNs)
	}
	if nowNs > u.lastNs {
		u.integral += float64(u.count) * float64(nowNs-u.lastNs)
		u.series.Hold(u.lastNs, nowNs, u.count)
		u.lastNs = nowNs
	}
}

// Mean counts until nowNs and returns the mean count since time 0.
func (u *Usage) Mean(nowNs int64) float64 {
	u.advance(nowNs)
	if nowNs <= 0 {
		return 0
	}
	return u.integral / float64(nowNs)
}

// Close counts until the end and returns the mean count since time 0.
func (u *Usage) Close(endNs int64) float64 {
	u.EndNs = endNs
	u.series.ToNs = min(u.series.ToNs, endNs)
	return u.Mean(endNs)
}
