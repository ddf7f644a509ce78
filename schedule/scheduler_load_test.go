package schedule

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// periodic lets one region be used every periodNs, n times.
func (v *simulation) periodic(n int, periodNs int64, ids ...mem.RegionID) {
	for range n {
		v.nowNs += periodNs - ms
		v.use(ids, 10, ms)
	}
}

func TestOneSlowRegistrationDoesNotEndReleasing(t *testing.T) {
	v := newSimulation("pinwheel")
	v.periodic(20, 10*ms, 1)
	v.slowNs = 20 * ms // preempted, throttled: 200 times its cost
	v.periodic(5, 10*ms, 1)
	before := v.actions
	v.periodic(100, 10*ms, 1)
	if got := v.actions - before; got < 150 {
		t.Errorf("%d actions in 100 periods after one slow registration, want about 200", got)
	}
}

func TestManyRegionsDueAtOnceAreAllReady(t *testing.T) {
	const n = 1000 // 100 us each: a tenth of a second
	v := newSimulation("pinwheel")
	v.s.cost.share = .5 // for the first time, when nothing is known
	v.s.cost.pages *= n
	ids := make([]mem.RegionID, n)
	for i := range ids {
		ids[i] = mem.RegionID(i + 1)
	}
	v.periodic(12, 600*ms, ids...)
	before := v.late
	v.periodic(5, 600*ms, ids...)
	if v.late > before {
		t.Errorf("%d of %d needs were late", v.late-before, 5*n)
	}
	if v.actions < 5*n {
		t.Errorf("only %d actions: the regions stayed registered, which proves nothing", v.actions)
	}
}

func TestOneDecisionLooksAtFewRegions(t *testing.T) {
	v := newSimulation("pinwheel")
	for i := range mem.RegionID(5000) { // used once, kept
		v.nowNs += ms / 10
		v.use([]mem.RegionID{i + 1}, uint64(i), ms/10)
	}
	later := v.nowNs + 300*ms
	for range 1000 {
		waiting := v.s.reviews.all.n
		a := v.s.Next(later)
		if looked := waiting - v.s.reviews.all.n; looked > looksPerNext {
			t.Fatalf("one Next took %d regions to look at", looked)
		}
		if a.Kind == Wait && a.UntilNs > later {
			return
		}
		if a.Kind == Wait && a.UntilNs < later {
			t.Fatalf("waits for the past: %+v at %d", a, later)
		}
		v.s.Done(a, later, later, nil)
	}
	t.Fatal("the looks never end")
}

func TestDeadlinesThatPassedLongAgoAreDropped(t *testing.T) {
	v := newSimulation("pinwheel")
	for range 10 {
		for id := range mem.RegionID(20) {
			v.nowNs += 5 * ms
			v.use([]mem.RegionID{id + 1}, uint64(id), ms)
		}
	}
	if v.s.due.all.n == 0 {
		t.Fatal("nothing is due: this test proves nothing")
	}
	afterPark := v.nowNs + 600_000*ms
	for range 1000 {
		switch a := v.s.Next(afterPark); a.Kind {
		case Register:
			t.Fatalf("region %d is registered for a need ten minutes ago", a.Region)
		case Deregister:
			v.s.Done(a, afterPark, afterPark+ms, nil)
		default:
			if a.Kind == Idle || a.UntilNs > afterPark {
				return
			}
		}
	}
}

func TestFailedDeregistrationIsLookedAtAgain(t *testing.T) {
	v := newSimulation("pinwheel")
	v.periodic(6, 100*ms, 1)
	v.fail = func(Action) error { return verbs.ErrBusy }
	v.periodic(1, 100*ms, 1) // its deregistration fails, and no event comes after it
	v.fail = nil
	v.nowNs += 50 * ms
	v.helper()
	if v.on[1] {
		t.Error("still registered in the middle of the gap: the failure was the last look")
	}
}

func TestOnePauseIsForgottenInTheEnd(t *testing.T) {
	var h idleHistory
	h.add(idleTime{3_600_000 * ms, 7})
	for range 2 * idleWindow {
		h.add(idleTime{ms, 1})
	}
	if h.longestNs() != ms || h.mostPhases() != 1 {
		t.Errorf("after %d short ones the longest idle time is %d ms and %d phases", 2*idleWindow, h.longestNs()/ms, h.mostPhases())
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	s := NewScheduler(predictor.NewPinwheel(predictor.Options{Window: 2}), SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true})
	var nowNs int64
	step := func() {
		for id := range mem.RegionID(4) {
			nowNs += 5 * ms
			s.Observe(Event{Pages: 100, Use: predictor.Use{Region: id + 1, StartNs: nowNs - ms, EndNs: nowNs, Frames: [predictor.MaxFrames]uint64{uint64(id + 1)}}}, nowNs)
			for range 8 {
				a := s.Next(nowNs)
				if a.Kind == Idle || a.Kind == Wait {
					break
				}
				s.Done(a, nowNs, nowNs+us, nil)
			}
		}
	}
	for range 200 {
		step()
	}
	if n := testing.AllocsPerRun(200, step); n > 0 {
		t.Errorf("%v allocations per round of four uses", n)
	}
}

// A cache forgets regions at any time, also those that the helper was about to release.
func TestForgottenRegionIsNotReleased(t *testing.T) {
	p := always{NextNs: 1000 * ms, ExpectedNs: 1000 * ms, LatestNs: 1000 * ms, Confidence: .9}
	for _, forgets := range []bool{false, true} {
		s := NewScheduler(p, SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true})
		s.Observe(*use(1, us), us)
		s.addCandidate(s.regions[1])
		if forgets {
			s.Forget(1)
		}
		if a := s.Next(2 * us); (a.Kind == Deregister) == forgets {
			t.Errorf("forgotten %t: %+v", forgets, a)
		}
	}
}

// The cache may forget a region whose use is still in DQ.
func TestRegionThatIsUsedAfterItWasForgottenIsReleasedAgain(t *testing.T) {
	s := NewScheduler(predictor.NewPinwheel(predictor.Options{}), SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true})
	var nowNs int64
	releases := func() (n int) {
		for i := range 16 {
			nowNs += 100 * ms
			u := predictor.Use{Region: mem.RegionID(1 + i%2), StartNs: nowNs - us, EndNs: nowNs}
			s.Observe(Event{Pages: 1, Use: u}, nowNs)
			for a := s.Next(nowNs); a.Kind == Register || a.Kind == Deregister; a = s.Next(nowNs) {
				s.Done(a, nowNs, nowNs+us, nil)
				if a.Kind == Deregister && a.Region == 2 {
					n++
				}
			}
		}
		return n
	}
	if n := releases(); n == 0 {
		t.Fatal("never released")
	}
	s.Forget(2)
	if n := releases(); n == 0 {
		t.Fatal("not released once it was forgotten")
	}
}
