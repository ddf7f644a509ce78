package schedule

import (
	"testing"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// Section 3.2 of Li et al., CF'11: "We deregister a memory region [if] the current time plus the estimated processing delay
// [...] is not later than the earliest registration deadline associated with the region." Region 1 has a deadline at 200 ms,
// of call site 10, which passed, and one at 350 ms, of site 11. At 301 ms, paper has time to release it until 350; under
// paper-strict the deadline of 200 ms keeps it.
func TestOverdueDeadlinesKeepARegionUnderTheStrictReading(t *testing.T) {
	for policy, want := range map[string]ActionKind{Paper: Deregister, PaperStrict: Idle} {
		p, so, ok := NewPaper(policy, predictor.Options{}, testCosts)
		if !ok {
			t.Fatalf("no policy %s", policy)
		}
		s := NewScheduler(p, so)
		for _, u := range []struct {
			atMs int64
			site uint64
		}{{0, 10}, {100, 10}, {250, 11}, {300, 11}} {
			e := use(1, u.atMs*ms)
			e.Frames[0] = u.site
			s.Observe(*e, u.atMs*ms)
		}
		if a := s.Next(301 * ms); a.Kind != want {
			t.Errorf("%s: %+v, want kind %d", policy, a, want)
		}
	}
}

// As printed: t_p of the deregistration condition is t_deregister + t_insert + t_register + t_update, that of the
// registration condition t_hash + t_cache + t_deregister + t_insert + t_register + t_update, and deadlines in RQ are moved
// apart by the cost of one RQ item plus the cost of one DQ item. A region of 100 pages takes 50 us to deregister and 100 us
// to register.
func TestConditionsOfThePaperAsPrinted(t *testing.T) {
	const (
		deregisterNs, registerNs = 50_000, 100_000
		releasePeriodNs          = deregisterNs + registerNs + PaperItemNs
		registerPeriodNs         = deregisterNs + registerNs + 2*PaperItemNs
		dueNs                    = 100_000_000 // 100 ms
	)
	started := func(regions uint64) *Scheduler {
		_, so, _ := NewPaper(Paper, predictor.Options{}, testCosts)
		s := NewScheduler(always{NextNs: dueNs, ExpectedNs: dueNs}, so)
		for id := range regions {
			e := use(mem.RegionID(1+id), 1)
			e.Pages = 100
			s.Observe(*e, 1)
			s.addCandidate(s.regions[e.Region])
		}
		return s
	}
	release := func(s *Scheduler, nowNs int64) {
		t.Helper()
		a := s.Next(nowNs)
		if a.Kind != Deregister {
			t.Fatalf("%+v at %d", a, nowNs)
		}
		s.Done(a, nowNs, nowNs+deregisterNs, nil)
	}
	if a := started(1).Next(dueNs - releasePeriodNs + 1); a.Kind != Idle {
		t.Errorf("%+v a nanosecond after the last moment for a release", a)
	}
	release(started(1), dueNs-releasePeriodNs)

	s := started(1)
	release(s, ms)
	if a := s.Next(2 * ms); a.Kind != Wait || a.UntilNs != dueNs-registerPeriodNs {
		t.Errorf("%+v, want a registration %d ns before it is due", a, registerPeriodNs)
	}

	s = started(3)
	for range 3 {
		release(s, ms)
	}
	if a := s.Next(2 * ms); a.Kind != Wait || a.UntilNs != dueNs-3*registerPeriodNs {
		t.Errorf("%+v for three that are due together, want %d ns before", a, 3*registerPeriodNs)
	}
}
