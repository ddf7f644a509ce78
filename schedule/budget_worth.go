package schedule

import "pinwheel/mem"

// worth decides whether it pays at all that the helper looks at what the program does. It compares
// the processor time of a period with what was saved in it, at leastPrice. A helper that saves too
// little parks: it leaves DQ alone, and everything stays registered. It looks again later, or when
// the program has much more memory registered than before.
type worth struct {
	beganNs int64   // of the period, or of the park
	spentNs int64   // processor time in the period
	saved   float64 // in the period: bytes times nanoseconds
	bytes   int64   // deregistered now, and due to be registered again
	sinceNs int64   // until when saved counts them

	parkNs      int64 // how long the next park lasts
	untilNs     int64 // parked until then, if that is to come
	parkedBytes int64 // registered when the park began; -1: to be seen
	parkedNs    int64 // in all
}

const (
	// judgedNs is how long a helper may try.
	judgedNs = 10_000_000_000 // 10 s
	// cheapShare is the share of a period, as its reciprocal, that is never worth saving: a
	// parked helper wakes up too.
	cheapShare = 500
	// firstParkNs and mostParkNs bound a park. Each park after a period that was not worth it
	// is twice as long as the one before.
	firstParkNs = 10_000_000_000  // 10 s
	mostParkNs  = 160_000_000_000 // 160 s
	// grownBy is how many times as much memory must be registered to end a park.
	grownBy = 2
	// grownBytes is how much more it must be at least.
	grownBytes = 1 << 20 // 1 MiB
)

// restart begins to judge, with nothing known.
func (w *worth) restart(nowNs int64) {
	*w = worth{beganNs: nowNs, sinceNs: nowNs, parkNs: firstParkNs, parkedNs: w.parkedNs}
}

// observe notes how many pages are deregistered and due to be registered again.
func (w *worth) observe(pages uint64, nowNs int64) {
	w.saved += float64(w.bytes) * float64(max(0, nowNs-w.sinceNs))
	w.bytes, w.sinceNs = int64(pages*mem.PageSize), max(nowNs, w.sinceNs)
}

// judge ends a period that has lasted long enough, and reports whether the helper is parked now.
func (w *worth) judge(nowNs int64) (parks bool) {
	if nowNs-w.beganNs < judgedNs || nowNs < w.untilNs {
		return false
	}
	if w.spentNs > (nowNs-w.beganNs)/cheapShare && w.saved < leastPrice*float64(w.spentNs) {
		parks = true
		w.untilNs, w.parkedBytes = nowNs+w.parkNs, -1
		w.parkedNs += w.parkNs
		w.parkNs = min(2*w.parkNs, mostParkNs)
	} else {
		w.parkNs = firstParkNs
	}
	w.begin(max(nowNs, w.untilNs))
	return parks
}

func (w *worth) begin(atNs int64) { w.beganNs, w.spentNs, w.saved = atNs, 0, 0 }

// parkedUntil returns when a parked helper is to be asked again; a time that has passed if it is
// not parked.
func (w *worth) parkedUntil(nowNs int64, pinnedBytes func() int64) int64 {
	if nowNs >= w.untilNs {
		return 0
	}
	bytes := pinnedBytes()
	if w.parkedBytes < 0 {
		w.parkedBytes = bytes
	}
	if bytes > grownBy*w.parkedBytes+grownBytes {
		w.parkedNs -= w.untilNs - nowNs
		w.untilNs, w.parkNs = nowNs, firstParkNs
		w.begin(nowNs)
		return 0
	}
	return min(w.untilNs, nowNs+mostPollNs)
}
