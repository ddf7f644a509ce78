package schedule

import (
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

const second = 1_000_000_000

// onRanksProcessor returns a simulation whose helper has no processor of its own and may cost a share of the rank's time.
func onRanksProcessor(share float64) *simulation {
	v := newSimulation("pinwheel")
	v.s.cost.share, v.s.cost.pages = share, 0
	v.s.SetShared(true, 0)
	return v
}

// beside is what else is registered where a late use is to cost more than memory that waits for it for a millisecond.
const beside = otherPages / 1000

// cycleNs is what a region of a simulation takes that is released and registered again.
const cycleNs = 155_000

// Whatever a program does, what the helper takes from its rank and what late uses cost stays within the budget, but for
// one operation.
func TestHelperOnItsRanksProcessorKeepsWithinTheCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.SampledFrom([]float64{.0005, .005, .05}).Draw(t, "share")
		v := onRanksProcessor(share)
		longest := rapid.SampledFrom([]int64{20 * us, ms, 20 * ms, 500 * ms}).Draw(t, "longest silence")
		seed, regular := rapid.Uint64().Draw(t, "seed"), rapid.Bool().Draw(t, "regular")
		for n := range uint64(1000) {
			seed = seed*6364136223846793005 + 1442695040888963407
			if regular {
				v.nowNs += longest / 16
				v.use([]mem.RegionID{mem.RegionID(1 + n%16)}, n%16, 10*us)
				continue
			}
			v.nowNs += int64(seed >> 33 % uint64(longest))
			v.use([]mem.RegionID{mem.RegionID(1 + seed>>60)}, seed>>58, 10*us)
		}
		v.helper()
		tookNs := v.spentNs + int64(v.late)*testCosts.Register.Ns(100)
		if mayNs := int64(share * float64(v.nowNs+advanceNs)); tookNs > mayNs+cycleNs {
			t.Errorf("%d us in %d ms, which may cost %d us", tookNs/us, v.nowNs/ms, mayNs/us)
		}
	})
}

// Memory that is idle for long is worth what its release takes; what is used all the time is not.
func TestSharedHelperReleasesWhatIsIdleForLong(t *testing.T) {
	for gapNs, want := range map[int64]bool{ms: false, second: true} {
		v := onRanksProcessor(DefaultCost)
		v.s.cost.pages = beside
		for range 100 {
			v.use([]mem.RegionID{1}, 1, ms)
			v.nowNs += gapNs
		}
		if saves := v.actions > 150; saves != want {
			t.Errorf("%d actions in 100 gaps of %d ms", v.actions, gapNs/ms)
		}
		if v.late > 2 {
			t.Errorf("%d of %d needs were late", v.late, v.needs)
		}
	}
}

// A release sets aside all that it takes, and then what the registration takes, which is paid whatever else is spent.
func TestReleaseSetsAsideItsRegistration(t *testing.T) {
	v := onRanksProcessor(DefaultCost)
	v.s.cost.pages = beside
	for range 10 {
		v.use([]mem.RegionID{1}, 1, ms)
		v.nowNs += second
	}
	before := 0.
	v.fail = func(a Action) error {
		before = max(before, v.s.cost.asideNs)
		return nil
	}
	v.use([]mem.RegionID{1}, 1, ms)
	v.nowNs += 100 * ms
	v.helper()
	if before < cycleNs {
		t.Errorf("%g ns are set aside before it, want %d at least", before, cycleNs)
	}
	if got, want := v.s.cost.asideNs, v.s.stallNs(v.s.regions[1]); v.on[1] || got != want {
		t.Errorf("%g ns are set aside, want %g; registered: %t", got, want, v.on[1])
	}
	v.s.Spend(second, v.nowNs)
	v.nowNs += 950 * ms
	v.helper()
	if !v.on[1] || v.s.cost.asideNs != 0 {
		t.Errorf("with nothing left it is registered for its use: %t; %g ns set aside", v.on[1], v.s.cost.asideNs)
	}
}

func TestHelperRestsUntilSomethingIsLeft(t *testing.T) {
	s := newSimulation("pinwheel").s
	s.cost.share = .01
	s.Spend(second, 0)
	if untilNs := s.Rest(0); untilNs > 0 {
		t.Errorf("on a processor of its own it rests until %d ms", untilNs/ms)
	}
	if share := s.SetShared(true, 0); share != .01 || s.Rest(0) > 0 {
		t.Errorf("it may take %g, and rests until %d ms", share, s.Rest(0)/ms)
	}
	s.Spend(30*ms, 0) // 1 s is advanced: 20 ms are to be earned in 2 s
	for _, c := range []struct{ nowNs, leastNs, mostNs int64 }{
		{0, 1999 * ms, 2001 * ms},
		{1500 * ms, 1999 * ms, 2001 * ms},
		{1999 * ms, 1999*ms + leastRestNs, 2000*ms + leastRestNs},
		{2001 * ms, 0, 2001 * ms},
	} {
		if got := s.Rest(c.nowNs); got < c.leastNs || got > c.mostNs {
			t.Errorf("at %d ms it rests until %d ms, want %d to %d", c.nowNs/ms, got/ms, c.leastNs/ms, c.mostNs/ms)
		}
	}
	s.Spend(3600*second, 2001*ms)
	if got := s.Rest(2001 * ms); got != 2001*ms+mostRestNs {
		t.Errorf("with an hour spent it rests until %d ms", got/ms)
	}
}

// A long run on a processor of its own must not spend what it has saved in one burst on its rank's.
func TestSavingsAreBoundOnTheRanksProcessor(t *testing.T) {
	s := newSimulation("pinwheel").s
	s.Observe(*use(1, us), us)
	s.cost.advance(3600 * second)
	before := s.cost.leftNs()
	s.SetShared(true, 3600*second)
	most := DefaultCost * mostSavedNs
	if got := s.cost.leftNs(); got > most*1.001 || before < 10*most {
		t.Errorf("%g ns are left, and %g before; want %g at most", got, before, most)
	}
	// All of it is left, so a release is as cheap as ever.
	cheap := costBudget{share: DefaultCost, pages: s.cost.pages}
	if got, want := s.cost.worthNs(1000, 1), cheap.worthNs(1000, 1); got > 1.1*want {
		t.Errorf("a stall is worth %g ns, want %g", got, want)
	}
}
