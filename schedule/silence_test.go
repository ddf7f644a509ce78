package schedule

import "testing"

// How long a silence must be follows the expected need, not the caution of the prediction.
func TestCautionDoesNotShortenSilence(t *testing.T) {
	p := always{NextNs: ms, ExpectedNs: 1000 * ms, LatestNs: 1000 * ms, Confidence: .5}
	s := NewScheduler(p, SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true, Cost: 1e-8})
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

// The end of a silence makes what was released in it due, whatever event its need was to wait for: that is not looked
// for any more.
func TestEndOfASilenceWaitsForNoGate(t *testing.T) {
	p := always{NextNs: ms, ExpectedNs: ms, LatestNs: ms, Confidence: .5, Gated: true, AfterNs: ms}
	s := NewScheduler(p, SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true, Cost: 1e-8})
	s.Observe(*use(1, us), us)
	s.addCandidate(s.regions[1])
	atNs, released := nextRegistrationOf(t, s, 2*ms, second), len(s.silence.released)
	if atNs != Never || s.gated.all.n != 1 || released != 1 {
		t.Fatalf("registered at %d, %d gates closed, %d released in silence", atNs, s.gated.all.n, released)
	}
	nowNs := int64(2 * second)
	s.Observe(*use(2, nowNs), nowNs)
	if atNs = nextRegistrationOf(t, s, nowNs, nowNs+ms); atNs == Never || s.gated.all.n != 0 {
		t.Errorf("registered at %d, %d gates closed", atNs, s.gated.all.n)
	}
}

// What a worker registers already when the silence ends is not registered by another one.
func TestEndOfASilenceRegistersNothingTwice(t *testing.T) {
	p := always{NextNs: ms, ExpectedNs: ms, LatestNs: ms, Confidence: .5, Gated: true, AfterNs: ms, GateNs: second}
	s := NewScheduler(p, SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true, Cost: 1e-8, Workers: 2})
	s.Observe(*use(1, us), us)
	s.addCandidate(s.regions[1])
	a, nowNs := Action{}, int64(2*ms)
	for a.Kind != Register && nowNs < 2*second {
		switch a = s.Next(nowNs); a.Kind {
		case Deregister:
			s.Done(a, nowNs, nowNs+us, nil)
		case Wait:
			nowNs = max(nowNs, a.UntilNs)
		}
	}
	if a.Kind != Register || len(s.silence.released) != 1 {
		t.Fatalf("%+v at %d, %d released in silence", a, nowNs, len(s.silence.released))
	}
	s.Observe(*use(2, nowNs), nowNs)
	if again := s.Next(nowNs); again.Kind == Register {
		t.Errorf("%+v while it is under way", again)
	}
	s.Done(a, nowNs, nowNs+us, nil)
}
