package schedule

import "pinwheel/predictor"

const (
	// abandonedRatio is the multiple of its longest idle time after which a
	// region counts as abandoned, if the program also went through more phases
	// without it than ever before.
	abandonedRatio = 1.5
)

// shouldRelease decides whether a registered region that nobody uses should be
// deregistered now. If not, it plans when to look at the region again.
func (s *Scheduler) shouldRelease(r *region, nowNs int64) bool {
	why, savedNs := s.whyRelease(r, nowNs)
	if why == notLate {
		return false
	}
	if retryNs, ok := s.budget.admits(r, savedNs, nowNs); !ok {
		s.cost.settle(r)
		s.reviewFrom(r, nowNs, retryNs)
		return false
	}
	r.late = why
	return true
}

// whyRelease returns why a region should be released now, and for how long that is likely to save its memory; notLate
// says that it should not.
func (s *Scheduler) whyRelease(r *region, nowNs int64) (why lateCause, savedNs int64) {
	p, predicted := s.pred.Next(r.id, nowNs)
	pays := predicted && s.pays(&p, r, nowNs)
	// A region of which nothing is known is expected to stay idle for as long as it has been.
	idleNs := nowNs - r.lastEndNs
	switch {
	case s.opt.KeepUnknown:
		return s.whyWithinCost(r, &p, predicted, pays, nowNs)
	case pays:
		return latePredicted, p.NextNs - nowNs
	case predicted:
		return notLate, 0
	}
	return lateAtOnce, max(idleNs, s.idle.longestNs())
}

// whyWithinCost is whyRelease within a budget of what late uses cost: of keeping the region, releasing it and registering
// it ahead, and releasing it and leaving the registration to its next use, what is cheapest as far as it is known.
func (s *Scheduler) whyWithinCost(r *region, p *predictor.Prediction, predicted, pays bool, nowNs int64) (why lateCause, savedNs int64) {
	s.cost.advance(nowNs)
	stallNs := s.stallNs(r)
	worthNs := s.cost.worthNs(stallNs, r.pages)
	heldNs := nowNs - max(r.lastEndNs, r.readyNs)
	isDear := predicted && nowNs < p.ExpectedNs && float64(p.ExpectedNs-p.NextNs) > worthNs
	switch {
	case isDear && s.cost.setAside(r, stallNs): // it would be held for its use for too long
		return lateOnDemand, p.ExpectedNs - nowNs
	case pays && s.cost.setAside(r, riskOf(p)*stallNs):
		return latePredicted, p.NextNs - nowNs
	case !pays && float64(heldNs) >= worthNs && s.cost.setAside(r, stallNs):
		return lateOnDemand, nowNs - r.lastEndNs
	case s.isAbandoned(r, nowNs) && s.cost.leftNs() >= 0:
		return lateGoneOn, nowNs - r.lastEndNs
	}
	s.review(r, nowNs)
	return notLate, 0
}

// guessRisk is the part of a stall that is set aside for a guess. With less, those about the large buffers of FT pass the
// smallest budgets.
const guessRisk = 0.25

// riskOf is the part of its stall that is set aside for what a prediction says.
func riskOf(p *predictor.Prediction) float64 {
	if p.Confidence == 0 && p.NextNs != predictor.Never {
		return guessRisk
	}
	return 0
}

// pays reports whether a region can be released and registered again before its
// predicted need: the condition of Li et al., CF'11, t_c + t_p <= t_d.
func (s *Scheduler) pays(p *predictor.Prediction, r *region, nowNs int64) bool {
	if nowNs+s.cycleNs(r) <= p.NextNs {
		return true
	}
	if nowNs < p.NextNs { // the costs are why not
		s.register.relax()
		s.deregister.relax()
	}
	return false
}

// cycleNs is what a release of a region and the registration after it take. Less idle time is not worth them.
func (s *Scheduler) cycleNs(r *region) int64 {
	return s.deregister.ns(r.pages) + s.register.ns(r.pages) + 2*s.opt.ItemNs + s.opt.ShareNs
}

// isAbandoned reports whether the program goes on without a region: for longer
// than it ever did, and through more phases.
func (s *Scheduler) isAbandoned(r *region, nowNs int64) bool {
	return s.has(predictor.Abandoned) && r.uses > 1 &&
		float64(nowNs-r.lastEndNs) > abandonedRatio*float64(r.idle.longestNs()) && s.phase-r.lastPhase > r.idle.mostPhases()
}

const (
	// leastReviewNs is the least time between two looks at a region.
	leastReviewNs = 1_000_000
	// lookNs bounds the time spent on looks: a look takes about a microsecond,
	// and all regions together may take a twentieth of the helper's time.
	lookNs = 20_000
)

// review plans the next look at a region that stays registered without use.
func (s *Scheduler) review(r *region, nowNs int64) {
	s.reviewFrom(r, nowNs, nowNs)
}

// reviewFrom is the same for a region at which there is no use in looking before fromNs.
func (s *Scheduler) reviewFrom(r *region, nowNs, fromNs int64) {
	if s.opt.KeepUnknown {
		pauseNs := max(leastReviewNs, int64(len(s.regions))*lookNs, (nowNs-r.lastEndNs)/8)
		s.reviews.put(r, max(nowNs+pauseNs, fromNs))
	}
}
