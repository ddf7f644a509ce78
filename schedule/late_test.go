package schedule

import "testing"

// releaseOf lets the scheduler act until it releases a region, and returns when.
func releaseOf(t *testing.T, s *Scheduler, nowNs, untilNs int64) int64 {
	t.Helper()
	for nowNs < untilNs {
		switch a := s.Next(nowNs); a.Kind {
		case Deregister:
			s.Done(a, nowNs, nowNs+us, nil)
			return nowNs + us
		case Wait:
			nowNs = max(nowNs+1, a.UntilNs)
		default:
			t.Fatalf("%+v at %d ms", a, nowNs/ms)
		}
	}
	t.Fatal("never released")
	return 0
}

// Each late use has one cause, and a use that was in time has none.
func TestLateUsesHaveACause(t *testing.T) {
	soon := always{NextNs: ms, ExpectedNs: ms, LatestNs: ms, Confidence: .9}
	sure := always{NextNs: 1000 * ms, ExpectedNs: 1000 * ms, LatestNs: 1000 * ms, Confidence: .9}
	for name, c := range map[string]struct {
		p      always
		share  float64
		needNs int64
		missed bool // communication says so before the event comes
		want   LateUses
	}{
		"on demand":     {p: soon, needNs: 5 * second, want: LateUses{OnDemand: 1}},
		"sooner":        {p: sure, needNs: 500 * ms, want: LateUses{Sooner: 1}},
		"sooner, heard": {p: sure, needNs: 500 * ms, missed: true, want: LateUses{Sooner: 1}},
		"slow":          {p: sure, needNs: 1001 * ms, want: LateUses{Slow: 1}},
		"slow, heard":   {p: sure, needNs: 1001 * ms, missed: true, want: LateUses{Slow: 1}},
		"in time":       {p: sure, needNs: -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewScheduler(c.p, SchedulerOptions{Costs: testCosts, ItemNs: us, KeepUnknown: true})
			s.Observe(*use(1, us), us)
			s.addCandidate(s.regions[1])
			releaseOf(t, s, 2*ms, 4*second)
			if c.needNs < 0 {
				a := s.Next(c.p.NextNs)
				if a.Kind != Register {
					t.Fatalf("%+v", a)
				}
				s.Done(a, c.p.NextNs-ms, c.p.NextNs-us, nil)
				c.needNs = c.p.NextNs
			}
			if c.missed {
				s.Missed(Miss{Region: 1, NeedNs: c.needNs}, c.needNs)
			}
			for range 2 { // the second one finds it registered
				s.Observe(*use(1, c.needNs), c.needNs)
				c.needNs += ms
			}
			if got := s.Late(); got != c.want || got.Sum() != c.want.Sum() {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

// The policy of Li et al. releases what it knows nothing of.
func TestLateAtOnce(t *testing.T) {
	s := NewScheduler(fixed{}, SchedulerOptions{Costs: testCosts, ItemNs: us})
	s.Observe(*use(1, us), us)
	s.addCandidate(s.regions[1])
	releaseOf(t, s, 2*ms, second)
	s.Observe(*use(1, 2*second), 2*second)
	if got, want := s.Late(), (LateUses{AtOnce: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
