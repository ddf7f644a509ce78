package schedule

import (
	"math"
	"testing"

	"pinwheel/mem"
)

// Each late use has its price: what it has stalled, for the memory that was not registered before it.
func TestPriceIsThatOfTheLatestLateUses(t *testing.T) {
	s := NewScheduler(always{NextNs: Never}, SchedulerOptions{Costs: testCosts, KeepUnknown: true, Cost: .02})
	s.Observe(*use(1, us), us)
	r := s.regions[1]
	late := func(afterNs int64) float64 { // the price of one
		r.registered, r.releasedNs = false, r.lastEndNs
		needNs := r.lastEndNs + afterNs
		s.Observe(*use(1, needNs), needNs)
		return s.stallNs(r) / float64(r.pages*mem.PageSize) / float64(afterNs) * mibSecond
	}
	if c := s.Cost(); c.PriceNs != 0 || c.SpentNs != 0 || c.Share != .02 || c.EarnedNs != int64(.02*float64(second+us)) {
		t.Errorf("at first %+v", c)
	}
	want := late(second)
	if c := s.Cost(); math.Abs(c.PriceNs/want-1) > .01 || c.SpentNs != int64(s.stallNs(r)) {
		t.Errorf("%+v, want a price of %g", c, want)
	}
	for range 10 * latestUses {
		want = late(10 * second)
	}
	if c := s.Cost(); math.Abs(c.PriceNs/want-1) > .01 {
		t.Errorf("an old price stays: %+v, want %g", c, want)
	}
}

func TestPolicyPaperHasNoBudget(t *testing.T) {
	s := NewScheduler(always{}, SchedulerOptions{Costs: testCosts})
	s.Observe(*use(1, us), us)
	if c := s.Cost(); c != (CostCounts{}) {
		t.Errorf("%+v", c)
	}
}

// The dearest site that is served on demand has the price.
func TestPriceOnDemandIsThatOfTheDearestSite(t *testing.T) {
	d := NewDemand(.01, 0)
	if d.PriceNs() != 0 {
		t.Error("there is a price without a site")
	}
	// Each saves a MiB for the whole second. The second costs 2 ms, the third more than there is.
	saved := float64(mibSecond)
	d.Look(second, 1e6, []DemandCounts{
		{Uses: 1, Freed: 1, SpentNs: 1e6, SavedByteNs: saved}, {Uses: 1, Freed: 1, SpentNs: 2e6, SavedByteNs: saved},
		{Uses: 1, Freed: 1, SpentNs: 1e9, SavedByteNs: saved},
	})
	if got := d.PriceNs(); math.Abs(got/2e6-1) > 1e-6 {
		t.Errorf("a MiB for a second costs %g ns, want 2 ms", got)
	}
}
