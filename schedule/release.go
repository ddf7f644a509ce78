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
	why := s.whyRelease(r, nowNs)
	if why != notLate {
		r.late = why
	}
	return why != notLate
}

// whyRelease returns why a region should be released now; notLate says that it should not.
func (s *Scheduler) whyRelease(r *region, nowNs int64) lateCause {
	p, predicted := s.pred.Next(r.id, nowNs)
	pays := predicted && s.pays(&p, r, nowNs)
	switch {
	case s.opt.KeepUnknown:
		return s.whyWithinCost(r, &p, predicted, pays, nowNs)
	case pays:
		return latePredicted
	case predicted:
		return notLate
	}
	return lateAtOnce
}

// whyWithinCost is whyRelease within a budget of what releases cost: of keeping the region, releasing it and registering
// it ahead, and releasing it and leaving the registration to its next use, what is cheapest as far as it is known.
func (s *Scheduler) whyWithinCost(r *region, p *predictor.Prediction, predicted, pays bool, nowNs int64) lateCause {
	s.cost.advance(nowNs)
	costNs := s.releaseNs(r)
	worthNs := s.cost.worthNs(costNs, r.pages)
	riskNs := riskOf(p) * costNs
	if s.cost.shared { // registered ahead, it costs as much
		riskNs = costNs
		pays = pays && float64(p.NextNs-nowNs) >= worthNs
	}
	heldNs := nowNs - max(r.lastEndNs, r.readyNs)
	isDear := predicted && nowNs < p.ExpectedNs && float64(p.ExpectedNs-p.NextNs) > worthNs
	switch {
	case isDear && s.cost.setAside(r, costNs): // it would be held for its use for too long
		return lateOnDemand
	case pays && s.cost.setAside(r, riskNs):
		return latePredicted
	case !pays && float64(heldNs) >= worthNs && s.cost.setAside(r, costNs):
		return lateOnDemand
	case s.cost.shared: // what follows sets nothing aside
	case s.isAbandoned(r, nowNs) && s.cost.leftNs() >= 0:
		return lateGoneOn
	}
	s.review(r, nowNs)
	return notLate
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

// cycleNs is how long a release of a region and the registration after it last. Less idle time is not worth them.
func (s *Scheduler) cycleNs(r *region) int64 { return s.workNs(r) + s.opt.ShareNs }

// workNs is what they take of a processor.
func (s *Scheduler) workNs(r *region) int64 {
	items := 2 * s.opt.ItemNs
	if s.opt.Alternates {
		items = s.opt.ItemNs // t_insert + t_update
	}
	return s.deregister.ns(r.pages) + s.register.ns(r.pages) + items
}

// isAbandoned reports whether the program no longer uses a region: it has been idle for longer than ever before, and
// through more phases.
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
	if s.opt.KeepUnknown {
		s.reviews.put(r, nowNs+max(leastReviewNs, int64(len(s.regions))*lookNs, (nowNs-r.lastEndNs)/8))
	}
}
