package helper

import "pinwheel/mem"

// Suspicion releases regions without a prediction that says so: in long
// silences, in which the program computes and a pinned region costs memory
// for nothing. The next event wakes all that were released. A wrong suspicion
// costs one late registration, so that two bounds hold: it takes a silence
// in which that cost is nothing, and it spends credit that needs met in
// time earn back.
type suspicion struct {
	credit float64
	asleep []mem.RegionID
}

const (
	// silenceRatio is how many times the cost of its registration a region
	// that was used only once is kept through silence: a wrong suspicion
	// then adds at most 1/silenceRatio to the run time.
	silenceRatio = 4_000
	// overdueRatio is how many times longer than predicted a region may be
	// idle in silence.
	overdueRatio = 30
	// mostCredit is the number of suspicions that may be wrong in a row.
	mostCredit = 16
	// creditPerNeed keeps suspicion below half a percent of the needs.
	creditPerNeed = 0.005
)

func newSuspicion() suspicion { return suspicion{credit: mostCredit} }

// suspect decides whether a region is released on suspicion.
func (s *Scheduler) suspect(id mem.RegionID, r *region, nowNs int64) bool {
	silentNs := nowNs - max(r.lastEndNs, s.phaseEndNs)
	var limitNs int64
	if p, ok := s.pred.Next(id, nowNs); ok {
		cycleNs := s.deregister.ns(r.pages) + s.register.ns(r.pages)
		limitNs = overdueRatio * max(p.NextNs-r.lastEndNs, cycleNs)
	} else if !r.asleep {
		limitNs = silenceRatio * s.register.ns(r.pages)
	} else {
		return false
	}
	if silentNs < limitNs || s.suspicion.credit < 1 {
		return false
	}
	s.suspicion.credit--
	s.suspicion.asleep = append(s.suspicion.asleep, id)
	r.asleep = true
	return true
}

// wakeSuspects makes everything that was released on suspicion due now: the
// silence is over.
func (s *Scheduler) wakeSuspects(nowNs int64) {
	s.suspicion.credit = min(mostCredit, s.suspicion.credit+creditPerNeed)
	for _, id := range s.suspicion.asleep {
		if r := s.regions[id]; r != nil && !r.registered {
			s.due.put(id, r.pages, nowNs)
		}
	}
	s.suspicion.asleep = s.suspicion.asleep[:0]
}
