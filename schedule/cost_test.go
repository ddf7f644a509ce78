package schedule

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// Whatever comes, the stalls of a program without any order stay within the budget, but for what is under way.
func TestLateUsesKeepWithinTheirCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := newSimulation("pinwheel")
		v.s.cost.share = rapid.SampledFrom([]float64{.0005, .005, .05}).Draw(t, "share")
		v.s.cost.pages = 0
		const stallNs = 101e3
		seed := rapid.Uint64().Draw(t, "seed")
		for range 300 {
			seed = seed*6364136223846793005 + 1442695040888963407
			v.nowNs += int64(seed >> 33 % uint64(20*ms))
			v.use([]mem.RegionID{mem.RegionID(1 + seed>>60)}, seed>>58, ms)
		}
		mayNs := v.s.cost.share * float64(v.nowNs+advanceNs)
		if tookNs := float64(v.late) * stallNs; tookNs > mayNs+16*stallNs {
			t.Errorf("%d late uses took %.0f us in %d ms, which may take %.0f", v.late, tookNs/1e3, v.nowNs/ms, mayNs/1e3)
		}
		if aside := v.s.cost.asideNs; aside < 0 || aside > 2*16*stallNs {
			t.Errorf("%.0f ns are set aside for 16 regions", aside)
		}
	})
}

// A late use costs what it has stalled, which may be many times what the helper needs for a registration, and later
// decisions reckon with that. So does a wait for a registration of the helper.
func TestMeasuredStallsArePaid(t *testing.T) {
	s := NewScheduler(fixed{}, SchedulerOptions{Costs: testCosts, KeepUnknown: true, Cost: .01})
	const id, tookNs = 1, 5 * ms
	use := func(startNs int64) {
		s.Observe(Event{Use: predictor.Use{Region: id, StartNs: startNs, EndNs: startNs + ms}, Pages: 100}, startNs+ms)
	}
	use(0)
	released := func(atNs int64) {
		s.Done(Action{Kind: Deregister, Region: id}, atNs, atNs+50*us, nil)
	}
	estimated := s.stallNs(s.regions[id])
	released(2 * ms)
	s.Missed(Miss{Region: id, NeedNs: 20 * ms, StalledNs: tookNs}, 25*ms)
	if use(20 * ms); s.cost.spentNs != float64(tookNs) {
		t.Errorf("a stall of %d us costs %.0f us", tookNs/us, s.cost.spentNs/1e3)
	}
	if learned := s.stallNs(s.regions[id]); learned < 1.3*estimated {
		t.Errorf("the next stall is to take %.0f us, %.0f before", learned/1e3, estimated/1e3)
	}
	released(30 * ms)
	if use(40 * ms); s.cost.spentNs <= float64(tookNs) || s.cost.spentNs > float64(2*tookNs) {
		t.Errorf("after another, of which nobody has told, %.0f us are spent", s.cost.spentNs/1e3)
	}
}

func TestWorthOfAStall(t *testing.T) {
	const stallNs = 1000.
	b := costBudget{share: .01, pages: 40_000}
	left := b.earnedNs()
	b.spentNs = left
	// The budget of a quarter of the memory earns the stall in that time.
	if got, want := b.worthNs(stallNs, 10_000), stallNs/(.01*10/40); math.Abs(got-want) > 1 {
		t.Errorf("with nothing left it is worth %g ns, want %g", got, want)
	}
	b.spentNs = left + 1e9
	if got, want := b.worthNs(stallNs, 10_000), stallNs/(.01*10/40); math.Abs(got-want) > 1 {
		t.Errorf("with less than nothing left it is worth %g ns, want %g", got, want)
	}
	before := math.Inf(1)
	for _, spent := range []float64{left - 2*stallNs, left / 2, 0} {
		b.spentNs = spent
		if got := b.worthNs(stallNs, 10); got >= before {
			t.Errorf("worth %g ns with %g left, %g with less", got, b.leftNs(), before)
		} else {
			before = got
		}
	}
	b.pages = 10
	if got := b.worthNs(stallNs, 10); got != worthStalls*stallNs {
		t.Errorf("with everything left it is worth %g ns, want %g", got, worthStalls*stallNs)
	}
	if b.shared = true; b.worthNs(stallNs, 10) >= worthStalls*stallNs {
		t.Errorf("on the core of the rank it is worth %g ns", b.worthNs(stallNs, 10))
	}
}

// However much may be spent, a helper with a core of its own registers ahead what it foresees well.
func TestWhatIsForeseenWellIsRegisteredAhead(t *testing.T) {
	for name, c := range map[string]struct {
		stalls float64 // the prediction may be early by so many
		ahead  bool
	}{
		"well":  {worthStalls / 2, true},
		"badly": {2 * worthStalls, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := fixed{}
			s := NewScheduler(early{p, &c.stalls}, SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true})
			s.Observe(*use(1, us), us)
			c.stalls *= s.stallNs(s.regions[1])
			p[1] = second
			s.addCandidate(s.regions[1])
			releaseOf(t, s, 2*ms, second)
			if a := s.Next(second); (a.Kind == Register) != c.ahead {
				t.Errorf("when the use is due: %+v", a)
			}
		})
	}
}

// early are predictions that leave room for an error.
type early struct {
	fixed
	byNs *float64
}

func (e early) Next(id mem.RegionID, nowNs int64) (predictor.Prediction, bool) {
	p, ok := e.fixed.Next(id, nowNs)
	p.NextNs -= int64(*e.byNs)
	return p, ok
}

func TestNoMoreIsSetAsideThanIsLeft(t *testing.T) {
	b := costBudget{share: .01}
	left := b.leftNs()
	var one, two region
	if !b.setAside(&one, left/2) || b.setAside(&two, left) || !b.setAside(&one, left) || b.leftNs() != 0 {
		t.Errorf("%g left of %g, %g and %g set aside", b.leftNs(), left, one.asideNs, two.asideNs)
	}
	if b.settle(&one); b.leftNs() != left || one.asideNs != 0 {
		t.Errorf("%g left of %g after the use", b.leftNs(), left)
	}
}
