package helper

import "testing"

// How long a silence must be follows the expected need, not the caution of the prediction.
func TestCautionDoesNotShortenSilence(t *testing.T) {
	p := always{NextNs: ms, ExpectedNs: 1000 * ms, LatestNs: 1000 * ms, Confidence: .5}
	s := NewScheduler(p, SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true})
	s.Observe(*use(1, us), us)
	s.addCandidate(s.regions[1])
	for nowNs := 2 * ms; nowNs < 2*overdueRatio*1000*ms; {
		switch a := s.Next(nowNs); a.Kind {
		case Deregister:
			if nowNs < overdueRatio*1000*ms {
				t.Errorf("released after %d ms of silence, the need was expected after 1000 ms", nowNs/ms)
			}
			return
		case Wait:
			nowNs = max(nowNs, a.UntilNs)
		default:
			t.Fatalf("%+v at %d ms", a, nowNs/ms)
		}
	}
	t.Error("never released")
}
