package helper

import "pinwheel/mem"

const (
	// patience is the multiple of its longest idle time after which a region
	// counts as given up, if the program also went through more phases
	// without it than ever before.
	patience = 1.5
	// confident is the confidence from which a failed prediction alone means
	// that the program has left the pattern.
	confident = 0.75
	// restless is the multiple of a cycle of deregistration and registration
	// that must be left for a region which the helper registered and which
	// was not used yet: predictions waver, and pinning should not.
	restless = 4
)

// release decides whether a registered region that nobody uses should be
// deregistered now, and when to think again if not.
func (s *Scheduler) release(id mem.RegionID, r *region, nowNs int64) bool {
	p, predicted := s.pred.Next(id, nowNs)
	if !predicted && !s.opt.Keep {
		return true
	}
	cycleNs := s.deregister.ns(r.pages) + s.register.ns(r.pages) + 2*s.opt.ItemNs + s.opt.ShareNs
	if r.unused {
		cycleNs *= restless
	}
	if predicted && nowNs+cycleNs <= p.NextNs {
		return true // the condition of Li et al., CF'11: t_c + t_p <= t_d
	}
	if predicted && nowNs < p.NextNs { // the costs are why not
		s.register.relax()
		s.deregister.relax()
	}
	if !s.opt.Keep {
		return false
	}
	overdueNs := nowNs - max(p.NextNs, p.LatestNs)
	if predicted && p.Confidence > confident && overdueNs > max(p.NextNs-r.lastEndNs, s.longest.ns()/4)/2 {
		return true
	}
	if r.uses > 1 && float64(nowNs-r.lastEndNs) > patience*float64(r.longest.ns()) && s.phase-r.lastPhase > r.longest.phases() {
		return true
	}
	if s.suspect(id, r, nowNs) {
		return true
	}
	s.review(id, r, nowNs)
	return false
}

const (
	// leastReviewNs is the least time between two looks at a region.
	leastReviewNs = 1_000_000
	// lookNs bounds the time spent on looks: a look takes about a microsecond,
	// and all regions together may take a twentieth of the helper's time.
	lookNs = 20_000
)

// review plans the next look at a region that stays registered without use.
func (s *Scheduler) review(id mem.RegionID, r *region, nowNs int64) {
	if s.opt.Keep {
		s.reviews.Put(id, nowNs+max(leastReviewNs, int64(len(s.regions))*lookNs, (nowNs-r.lastEndNs)/8))
	}
}
