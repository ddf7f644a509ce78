package schedule

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// always predicts the same of every region.
type always predictor.Prediction

func (p always) Observe(predictor.Use)   {}
func (p always) Changed() []mem.RegionID { return nil }
func (p always) Forget(mem.RegionID)     {}
func (p always) Next(mem.RegionID, int64) (predictor.Prediction, bool) {
	return predictor.Prediction(p), true
}

// nextRegistrationOf lets the scheduler act until a time, and returns when it registers a region.
func nextRegistrationOf(t *testing.T, s *Scheduler, nowNs, untilNs int64) (atNs int64) {
	t.Helper()
	for range 10_000 {
		a := s.Next(nowNs)
		switch a.Kind {
		case Register:
			s.Done(a, nowNs, nowNs+us, nil)
			return nowNs
		case Deregister:
			s.Done(a, nowNs, nowNs+us, nil)
			nowNs += us
		case Wait:
			nowNs = max(nowNs, a.UntilNs)
		}
		if a.Kind == Idle || nowNs > untilNs {
			return Never
		}
	}
	t.Fatal("the scheduler never waits")
	return 0
}

// A closed gate that is not proven holds until the need never came later.
func TestGateIsGivenUp(t *testing.T) {
	p := always{NextNs: 100 * ms, ExpectedNs: 110 * ms, LatestNs: 120 * ms, Confidence: .8, Gated: true, AfterNs: 20 * ms}
	for _, c := range []struct{ gateNs, wantNs int64 }{{120 * ms, 120 * ms}, {predictor.Never, Never}} {
		p.GateNs = c.gateNs
		s := NewScheduler(p, SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true, Cost: 1e-5})
		s.Observe(*use(1, us), us)
		s.addCandidate(s.regions[1])
		const endNs = 10_000 * ms
		gotNs := nextRegistrationOf(t, s, 2*us, endNs)
		if gotNs != c.wantNs {
			t.Errorf("gate until %d: registered at %d us, want %d us", c.gateNs, gotNs/us, c.wantNs/us)
		}
		if gotNs == Never {
			continue
		}
		// It stays unused, is released when it was held for as long as its use is worth, and is left to that.
		gotNs = nextRegistrationOf(t, s, gotNs+us, endNs)
		if r := s.regions[1]; gotNs != Never || s.gated.all.n != 0 || r.registered {
			t.Errorf("registered again at %d us, %d gates closed, registered: %t", gotNs/us, s.gated.all.n, r.registered)
		}
	}
}
