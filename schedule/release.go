package schedule

import "pinwheel/predictor"

const (
	// abandonedRatio is the multiple of its longest idle time after which a
	// region counts as abandoned, if the program also went through more phases
	// without it than ever before.
	abandonedRatio = 1.5
	// sureConfidence is the confidence above which a failed prediction alone
	// means that the program has left the pattern.
	sureConfidence = 0.75
)

// shouldRelease decides whether a registered region that nobody uses should be
// deregistered now. If not, it plans when to look at the region again.
func (s *Scheduler) shouldRelease(r *region, nowNs int64) bool {
	p, predicted := s.pred.Next(r.id, nowNs)
	// A region of which nothing is known is expected to stay idle for as long as it has been.
	savedNs, late := nowNs-r.lastEndNs, lateGoneOn
	switch {
	case predicted && s.pays(&p, r, nowNs):
		savedNs, late = p.NextNs-nowNs, latePredicted
	case !s.opt.KeepUnknown && predicted:
		return false
	case !s.opt.KeepUnknown:
		savedNs, late = max(savedNs, s.idle.longestNs()), lateAtOnce
	case predicted && s.isOverdue(&p, r, nowNs) || s.isAbandoned(r, nowNs):
	case s.isSilent(r, &p, predicted, nowNs):
		late = lateSilent
	default:
		s.review(r, nowNs)
		return false
	}
	if retryNs, ok := s.budget.admits(r, savedNs, nowNs); !ok {
		s.reviewFrom(r, nowNs, retryNs)
		return false
	}
	if late == lateSilent {
		s.silence.release(r)
	}
	r.late = late
	return true
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

// isOverdue reports whether a need that was predicted with confidence is late by
// more than the predicted idle time: a program whose gaps double still finds its buffers.
// One whose gaps are short, and which was held up for a moment, finds them too.
func (s *Scheduler) isOverdue(p *predictor.Prediction, r *region, nowNs int64) bool {
	overdueNs := nowNs - max(p.NextNs, p.LatestNs)
	return s.has(predictor.Overdue) && p.Confidence > sureConfidence &&
		overdueNs > max(p.NextNs-r.lastEndNs, s.idle.longestNs()/4, s.cycleNs(r))
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
