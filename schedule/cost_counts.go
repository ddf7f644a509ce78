package schedule

import "pinwheel/mem"

// CostCounts are what a costBudget has earned and spent, in nanoseconds of the program's time, by its own estimate of
// what late uses take.
type CostCounts struct {
	Share    float64 // SchedulerOptions.Cost; 0 without a bound
	EarnedNs int64   // until now, with the advance
	SpentNs  int64
	AsideNs  int64   // set aside for next uses
	PriceNs  float64 // what saving a MiB for a second has cost at the latest late uses; 0 if there was none
}

// Cost returns what was earned and spent until the last event. Without SchedulerOptions.KeepUnknown, nothing bounds the
// cost.
func (s *Scheduler) Cost() CostCounts {
	b := &s.cost
	c := CostCounts{SpentNs: int64(b.spentNs), PriceNs: b.latest.priceNs()}
	if s.opt.KeepUnknown {
		c.Share, c.EarnedNs, c.AsideNs = b.share, int64(b.earnedNs()), int64(b.asideNs)
	}
	return c
}

// bargain is what late uses have cost, and what memory was saved for that. Old ones fade.
type bargain struct{ ns, byteNs float64 }

// latestUses is after how many late uses one counts for 1/e.
const latestUses = 16

// add counts a late use that stalled for stalledNs, of pages that had not been registered for savedNs.
func (b *bargain) add(stalledNs float64, pages uint64, savedNs int64) {
	const keep = 1 - 1.0/latestUses
	b.ns, b.byteNs = b.ns*keep+stalledNs, b.byteNs*keep+float64(pages*mem.PageSize)*float64(max(savedNs, 1))
}

// priceNs is what a MiB for a second has cost.
func (b *bargain) priceNs() float64 {
	if b.byteNs == 0 {
		return 0
	}
	return mibSecond * b.ns / b.byteNs
}

// mibSecond is a MiB for a second, in bytes times nanoseconds.
const mibSecond = 1e9 * (1 << 20)

// PriceNs is what saving a MiB for a second costs at the dearest site that the budget pays for; 0 if there is none.
func (d *Demand) PriceNs() (ns float64) {
	for i := range d.sites {
		if s := &d.sites[i]; s.paid && s.savedByte > 0 {
			ns = max(ns, mibSecond*s.costShare()*s.freedNs/s.savedByte)
		}
	}
	return ns
}
