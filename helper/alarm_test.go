package helper

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
			s.Missed(early, 900*ms, 900*ms)
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
