package schedule

import "math"

// DefaultCost is the SchedulerOptions.Cost of a Scheduler that is not told.
const DefaultCost = 0.005

const (
	// advanceNs is the time whose earnings a costBudget begins with: a job of a second may spend what two seconds earn.
	advanceNs = 1_000_000_000 // 1 s
	// thrift is how far the worth of a stall follows what is left: with nothing spent, it is e to this power lower than
	// with everything spent. With less, more is saved up that is never spent; with more, programs that repeat nothing
	// come too near to the whole budget.
	thrift = 6
	// worthStalls is how many times as long as a stall it is worth keeping a region idle to save it, whatever may be spent.
	// A helper with a core of its own then registers ahead what it foresees well, for next to no memory. With 10, the late
	// uses of a buffer of 256 KiB, every 150 ms, are halved; with 20 all are gone that it foresees, with 40 no more of
	// them (make bench-paper), and replays save less.
	worthStalls = 20
)

// costBudget bounds what releases cost the program: how long its communication path stalls for registrations that it
// would not wait for if everything stayed registered. It earns a share of the time, and pays for each such stall, by its
// estimate. A release whose next use will stall sets that aside until then. With nothing left, nothing is released. If
// the helper shares the processor of its rank, it pays for all that the helper does as well (shared.go).
type costBudget struct {
	share   float64
	keepNs  float64 // SchedulerOptions.KeepNs
	shared  bool    // the helper runs on the processor of its rank
	nowNs   int64
	spentNs float64
	asideNs float64
	latest  bargain
	pages   uint64 // of all regions
}

// advance brings the budget to a time.
func (b *costBudget) advance(nowNs int64) {
	b.nowNs = max(b.nowNs, nowNs)
	if b.shared {
		b.spentNs += max(b.leftNs()-b.mostNs(), 0) // what is beyond is lost
	}
}

// earnedNs is what the program has earned since it began, which is where its clock begins. Some compute for seconds before
// their first message.
func (b *costBudget) earnedNs() float64 { return b.share * float64(b.nowNs+advanceNs) }

// leftNs is what may be spent now; negative if more uses were late than expected.
func (b *costBudget) leftNs() float64 { return b.earnedNs() - b.spentNs - b.asideNs }

// mostNs is the most that can be left.
func (b *costBudget) mostNs() float64 {
	if b.shared {
		return min(b.earnedNs(), b.share*mostSavedNs)
	}
	return b.earnedNs()
}

// worthNs is how long it is worth keeping a region of this many pages idle, to save a stall.
//
// With nothing left after it, a region is kept until its part of the budget, by its part of all memory, has earned the
// stall: whatever comes, stalls of regions that are released after so long stay within the budget. This is ski rental.
// The more is left after the stall, the shorter it is: most of all as the first of it is left, so that a program that
// spends all it earns does not come to a price at which it saves nothing.
func (b *costBudget) worthNs(stallNs float64, pages uint64) float64 {
	left := max(b.leftNs()-stallNs, 0) / b.mostNs()
	leastNs := b.keepNs
	if !b.shared { // there, registering ahead costs the program as much
		leastNs = max(leastNs, worthStalls*stallNs)
	}
	return max(math.Exp(-thrift*math.Sqrt(left))*stallNs/b.share*float64(b.pages)/float64(max(pages, 1)), leastNs)
}

// pay pays for the stall of a late use of a region that began at needNs.
func (b *costBudget) pay(r *region, stalledNs float64, needNs int64) {
	b.spentNs += stalledNs
	b.latest.add(stalledNs, r.pages, needNs-r.releasedNs)
}

// setAside sets a stall aside for the next use of a region, if so much is left.
func (b *costBudget) setAside(r *region, stallNs float64) bool {
	if b.leftNs()+r.asideNs < stallNs {
		return false
	}
	b.leave(r, stallNs)
	return true
}

// leave changes what is set aside for a region.
func (b *costBudget) leave(r *region, ns float64) {
	b.asideNs += ns - r.asideNs
	r.asideNs = ns
}

// settle takes back what was set aside for a region: its use has come, or will not stall.
func (b *costBudget) settle(r *region) { b.leave(r, 0) }

// resize notes that a region has another size; 0 if it is gone.
func (b *costBudget) resize(r *region, pages uint64) { b.pages += pages - r.pages }

// stallNs is how long the next use of a region will stall if it has to register it: as late uses did so far, which may wait
// for another thread, or for a processor.
func (s *Scheduler) stallNs(r *region) float64 {
	return float64(s.stall.meanSum(r.pages, 1) + s.opt.ItemNs)
}

// stalledNs is how long a late use of a region, begun at needNs, has stalled: for its own registration, or until that
// of the helper was done. It is an estimate if nobody has said so.
func (s *Scheduler) stalledNs(r *region, needNs int64) float64 {
	switch {
	case r.stalledNs > 0:
		return float64(r.stalledNs + s.opt.ItemNs)
	case r.registered:
		return min(s.stallNs(r), float64(r.readyNs-needNs))
	}
	return s.stallNs(r)
}
