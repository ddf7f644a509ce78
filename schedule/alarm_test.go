package schedule

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// fixed predicts the same need of a region for ever.
type fixed map[mem.RegionID]int64

func (f fixed) Observe(predictor.Use)   {}
func (f fixed) Changed() []mem.RegionID { return nil }
func (f fixed) Forget(mem.RegionID)     {}
func (f fixed) Next(id mem.RegionID, _ int64) (predictor.Prediction, bool) {
	ns, ok := f[id]
	return predictor.Prediction{NextNs: ns, ExpectedNs: ns, LatestNs: ns, Confidence: 0.9}, ok
}

// A need that came early announces those of the same exchange, and no others.
func TestMissMakesDueWhatIsDueWithIt(t *testing.T) {
	const early, with, after = 1, 2, 3
	const aboutNs = 1000 * ms / alarmShare
	for name, c := range map[string]struct {
		opt  SchedulerOptions
		want ActionKind
	}{
		"pinwheel":          {SchedulerOptions{KeepUnknown: true}, Register},
		"without the alarm": {SchedulerOptions{KeepUnknown: true, Without: predictor.MissAlarm}, Wait},
		"paper":             {SchedulerOptions{}, Wait},
	} {
		t.Run(name, func(t *testing.T) {
			c.opt.Costs, c.opt.ItemNs = testCosts, us
			s := NewScheduler(fixed{early: 1000 * ms, with: 1000*ms + aboutNs/2, after: 1000*ms + 2*aboutNs}, c.opt)
			for id := mem.RegionID(early); id <= after; id++ {
				s.Observe(*use(id, 0), 0)
				s.Done(Action{Kind: Deregister, Region: id}, us, 2*us, nil)
			}
			s.Missed(Miss{Region: early, NeedNs: 900 * ms}, 900*ms)
			a := s.Next(900 * ms)
			if a.Kind != c.want || a.Kind == Register && a.Region != with {
				t.Fatalf("after a miss: %+v, want %v of %d", a, c.want, with)
			}
			if a.Kind != Register {
				return
			}
			s.Done(a, 900*ms, 901*ms, nil)
			if a := s.Next(901 * ms); a.Kind == Register {
				t.Errorf("%d is registered, too", a.Region)
			}
		})
	}
}

// opening predicts that a region is needed soon once the event of another one was seen.
type opening struct {
	fixed
	region, by mem.RegionID
	changed    []mem.RegionID
}

func (o *opening) Observe(u predictor.Use) {
	if o.changed = nil; u.Region == o.by {
		o.changed = []mem.RegionID{o.region}
	}
}
func (o *opening) Changed() []mem.RegionID { return o.changed }

// What communication is at is not due again before its event, and raises no second alarm by that.
func TestMissRaisesOneAlarm(t *testing.T) {
	const missed, by, later = 1, 2, 3
	p := &opening{fixed: fixed{missed: 1000 * ms, later: 2000 * ms}, region: missed, by: by}
	s := NewScheduler(p, SchedulerOptions{KeepUnknown: true, Costs: testCosts, ItemNs: us})
	for id := mem.RegionID(missed); id <= later; id++ {
		s.Observe(*use(id, 0), 0)
		s.Done(Action{Kind: Deregister, Region: id}, us, 2*us, nil)
	}
	s.Missed(Miss{Region: missed, NeedNs: 900 * ms}, 900*ms)
	p.fixed[missed] = 2000 * ms // the need after this one
	s.Observe(*use(by, 901*ms), 901*ms)
	if a := s.Next(901 * ms); a.Kind != Wait || isDue(s, missed) {
		t.Errorf("%+v, due %t: communication is at it", a, isDue(s, missed))
	}
	e := use(missed, 900*ms)
	e.EndNs = 910 * ms
	s.Observe(*e, 910*ms)
	if a := s.Next(910 * ms); a.Kind != Wait || !isDue(s, later) || isDue(s, missed) {
		t.Errorf("%+v, due: %d %t, %d %t", a, missed, isDue(s, missed), later, isDue(s, later))
	}
	// Released again, it is due as any other.
	s.Done(Action{Kind: Deregister, Region: missed}, 911*ms, 912*ms, nil)
	if !isDue(s, missed) {
		t.Errorf("region %d is not due after its use", missed)
	}
}

func isDue(s *Scheduler, id mem.RegionID) bool {
	r := s.regions[id]
	if r == nil {
		return false
	}
	_, ok := s.due.get(r)
	return ok
}

// After the event of the use that missed, the miss could be taken for one of the next use.
func TestMissIsIgnoredAfterTheEventOfItsUse(t *testing.T) {
	const missed, with = 1, 2
	s := NewScheduler(fixed{missed: 1000 * ms, with: 1000*ms + us},
		SchedulerOptions{KeepUnknown: true, Costs: testCosts, ItemNs: us})
	for id := mem.RegionID(missed); id <= with; id++ {
		e := use(id, ms)
		e.EndNs = 2 * ms
		s.Observe(*e, 2*ms)
		s.Done(Action{Kind: Deregister, Region: id}, 3*ms, 4*ms, nil)
	}
	s.Missed(Miss{Region: missed, NeedNs: ms}, 5*ms)
	if a := s.Next(5 * ms); a.Kind != Wait {
		t.Errorf("%+v after a miss of a use that has ended", a)
	}
	s.Missed(Miss{Region: missed, NeedNs: 5 * ms}, 5*ms)
	if a := s.Next(5 * ms); a.Kind != Register || a.Region != with {
		t.Errorf("%+v after a miss of the next use", a)
	}
}
