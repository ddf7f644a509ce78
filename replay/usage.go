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
		u.series.reach(nowNs, u.bytes)
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
	u.endNs = endNs
	u.advance(endNs)
	u.series.ToNs = min(u.series.ToNs, endNs)
	if endNs <= 0 {
		return 0
	}
	return u.integral / float64(endNs)
}
