package schedule

// A helper that finds no idle processor runs on that of its rank. So all that it does costs the rank time: looks at DQ
// and wake-ups, deregistrations, and registrations, even those that are ready before their use. All of that is paid by
// the costBudget. A release sets aside what it and the registration after it take, whoever registers, and is worth that
// only if it saves memory for long enough. With nothing left, the helper leaves DQ alone until there is. No more is
// left than mostSavedNs have earned: what a job has saved in an hour may not be spent in one burst.

const (
	// leastRestNs is the least time for which DQ is left alone: a look that has nothing to spend costs a wake-up.
	leastRestNs = 100_000_000 // 100 ms
	// mostRestNs is the most, after which it is computed again.
	mostRestNs = 10_000_000_000 // 10 s
)

// SetShared tells whether the helper runs on the processor of its rank from now on, and returns the share of the rank's
// time that it may take then; 0 if there is no limit.
func (s *Scheduler) SetShared(shared bool, nowNs int64) (share float64) {
	s.cost.shared = shared
	if !shared {
		return 0
	}
	s.cost.advance(nowNs)
	return s.cost.share
}

// Spend counts processor time that the helper has used. It does nothing while the helper has a processor to itself.
func (s *Scheduler) Spend(cpuNs, nowNs int64) {
	if s.cost.shared {
		s.cost.advance(nowNs)
		s.cost.spentNs += float64(cpuNs)
	}
}

// Rest returns until when the helper must leave DQ alone, or a time that has passed. What is due meanwhile it registers:
// that is set aside.
func (s *Scheduler) Rest(nowNs int64) (untilNs int64) {
	if !s.cost.shared {
		return 0
	}
	s.cost.advance(nowNs)
	leftNs := s.cost.leftNs()
	if leftNs > 0 {
		return 0
	}
	return nowNs + int64(max(leastRestNs, min(-leftNs/s.cost.share, mostRestNs)))
}

// releaseNs is what the release of a region may cost the rank: the stall of its next use or, on the rank's processor,
// all that is to be done for it and for the registration after it.
func (s *Scheduler) releaseNs(r *region) float64 {
	if s.cost.shared {
		return float64(s.workNs(r) + WakeupNs)
	}
	return s.stallNs(r)
}
