package schedule

import (
	"cmp"
	"slices"

	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// SchedulerOptions are the parameters of a Scheduler. Costs must come from a
// calibration.
type SchedulerOptions struct {
	// Costs are the provider's costs to begin with; they are updated from
	// every operation that the helper does.
	Costs verbs.Costs
	// ItemNs is the cost of everything around one registration: a look at DQ
	// and RQ, hashing, the cache (t_hash + t_cache + t_insert + t_update of
	// Li et al., CF'11, section 3.2).
	ItemNs int64
	// ShareNs is n*(t_slice + t_cs) of Li et al., CF'11, equation 2: how long other
	// helpers on the same core may keep this one waiting. 0 if it has the core to itself.
	ShareNs int64
	// KeepUnknown says what happens to regions of which nothing is known and to
	// those that were expected and did not come. If false, the first are
	// deregistered at once, the second stay registered, and a miss says nothing of
	// other regions: Li et al., CF'11. If true, both are kept until the program has
	// gone on without them.
	KeepUnknown bool
	// Alternates says that a registration leaves time for one item of DQ before it, with a deregistration, as the
	// registration condition of Li et al., CF'11, section 3.2, and the gap between its adjusted deadlines do.
	Alternates bool
	// Cost, with KeepUnknown, is the most that late uses, and all that a helper does on the processor of its rank, may
	// cost the program, as a share of its time. 0 is DefaultCost.
	Cost float64
	// KeepNs is for how long it is worth keeping any region idle to save a late use, whatever is left of that.
	KeepNs int64
	// Workers is how many registrations may run at the same time: Next may return this many before the first is Done. 0
	// is 1.
	Workers int
	// Concurrent says that registrations take none of the helper's time, as those that wait for another computer: with
	// Workers, each is for one of those. Without it, short ones are the helper's own.
	Concurrent bool
	// Without are ideas to leave out, for comparisons.
	Without predictor.Idea
}

// Scheduler decides when regions are deregistered and registered again. It
// is a pure state machine: it reads no clock, starts nothing and never
// blocks; the same calls give the same actions. It belongs to one driver, as the comment of the package says.
type Scheduler struct {
	opt        SchedulerOptions
	pred       predictor.Predictor
	regions    map[mem.RegionID]*region
	held       int               // of them are registered
	due        registrationQueue // RQ
	underWay   []underWay        // registrations that were begun and are not reported as done
	gated      deadlines         // released regions that wait for the event before their need, by the time at which they may be due
	reviews    deadlines         // registered regions, by the time of the next look at them
	last       *region           // that was used
	decided    *region           // of the latest action, of which Done mostly comes next
	candidates []*region         // from head on: regions that may be worth deregistering now
	head       int
	alarmed    []*region // scratch
	register   estimate
	deregister estimate
	stall      estimate // of a use that registers its region

	// A phase is a burst of uses that overlap in time. Counting phases tells
	// a program that computes from one that communicates without a region.
	phase      uint64
	phaseEndNs int64
	idle       idleHistory // of all regions
	cost       costBudget
	late       LateUses
}

// NewScheduler returns a Scheduler that predicts with p.
func NewScheduler(p predictor.Predictor, o SchedulerOptions) *Scheduler {
	o.Workers = max(o.Workers, 1)
	return &Scheduler{
		opt:        o,
		pred:       p,
		regions:    make(map[mem.RegionID]*region),
		due:        newRegistrationQueue(),
		gated:      deadlines{of: inGated},
		reviews:    deadlines{of: inReviews},
		register:   newEstimate(o.Costs.Register),
		deregister: newEstimate(o.Costs.Deregister),
		stall:      newEstimate(o.Costs.Register),
		cost:       costBudget{share: cmp.Or(o.Cost, DefaultCost), keepNs: float64(o.KeepNs)},
	}
}

// has reports whether an idea is not left out.
func (s *Scheduler) has(i predictor.Idea) bool { return s.opt.Without&i == 0 }

// Observe learns from one completed use of a region.
func (s *Scheduler) Observe(e Event, nowNs int64) {
	if e.StartNs >= s.phaseEndNs {
		s.phase++
	}
	s.phaseEndNs = max(s.phaseEndNs, e.EndNs)
	r := s.regionOf(e.Region)
	if r.uses > 0 {
		idle := idleTime{e.StartNs - r.lastEndNs, s.phase - r.lastPhase}
		r.idle.add(idle)
		s.idle.add(idle)
	}
	late := r.uses > 0 && (!r.registered && e.StartNs >= r.releasedNs || r.registered && e.StartNs < r.readyNs)
	if late {
		s.blame(r, e.StartNs)
		if !r.registered || !r.byHelper { // else the use has waited
			s.late.count(r.late)
		}
		s.alarm(e.Region, nowNs) // if nobody has said so before
	}
	s.cost.advance(nowNs)
	s.cost.settle(r)
	s.cost.resize(r, e.Pages)
	r.pages = e.Pages
	if late {
		s.cost.pay(r, s.stalledNs(r, e.StartNs), e.StartNs)
	}
	r.stalledNs = 0
	r.early = e.Early && (r.early || r.uses == 0)
	r.uses++
	r.lastEndNs, r.lastPhase = e.EndNs, s.phase
	if e.EndNs > r.releasedNs { // else the event was overtaken by the deregistration
		r.registered, r.late = true, notLate
		s.due.remove(r)
		s.gated.remove(r)
		s.reviews.remove(r)
	}
	s.hold(r)
	u := e.Use
	u.Known, u.Bytes, u.LeadNs = &r.known, int64(e.Pages*mem.PageSize), s.register.ns(e.Pages)+s.opt.ItemNs
	u.WorthNs = s.cost.worthNs(s.stallNs(r), r.pages)
	s.pred.Observe(u)
	s.followPredictions(r, nowNs)
}

// followPredictions queues or reviews the regions whose predictions a use has changed.
func (s *Scheduler) followPredictions(used *region, nowNs int64) {
	for _, id := range s.pred.Changed() {
		c := used
		if id != used.id {
			c = s.regions[id]
		}
		switch {
		case c == nil || c.underWay || c.early:
		case c.registered:
			s.addCandidate(c)
		default:
			p, ok := s.pred.Next(id, nowNs)
			if ok {
				s.queueNextNeed(c, &p, nowNs)
			}
		}
	}
}

// addCandidate makes a registered region a candidate for deregistration.
func (s *Scheduler) addCandidate(r *region) {
	if !r.candidate {
		r.candidate = true
		s.candidates = append(s.candidates, r)
	}
}

// queueNextNeed queues a deregistered region for its next need.
func (s *Scheduler) queueNextNeed(r *region, p *predictor.Prediction, nowNs int64) {
	switch {
	case p.NextNs == predictor.Never || r.isMissed() || r.late == lateOnDemand:
	case p.Gated && !s.cost.shared: // looking for the event would take too much of the rank's time
		s.due.remove(r)
		s.awaitGate(r, p, nowNs)
	default:
		s.gated.remove(r)
		s.due.put(r, p.NextNs)
	}
}

// looksPerNext bounds the work of one Next, so that a due registration never waits
// while the helper looks at thousands of idle regions.
const looksPerNext = 16

// Next decides what to do at nowNs: first register what is due, then release
// what can be released without making anything late, else wait. A Wait until nowNs
// means that there is more to look at.
func (s *Scheduler) Next(nowNs int64) Action {
	due := s.nextRegistration(nowNs)
	if due.startNs <= nowNs {
		return s.begin(due.region, nowNs)
	}
	s.reviewDue(nowNs)
	for range looksPerNext {
		if s.head == len(s.candidates) {
			s.candidates, s.head = s.candidates[:0], 0
			break
		}
		r := s.candidates[s.head]
		if !r.forgotten && r.registered && nowNs+s.deregister.ns(r.pages)+s.opt.ItemNs > due.startNs {
			return Action{Kind: Wait, UntilNs: due.startNs} // not before what is due
		}
		s.candidates[s.head] = nil // it may be forgotten
		s.head++
		r.candidate = false
		if !r.forgotten && r.registered && !r.underWay && s.shouldRelease(r, nowNs) {
			s.decided = r
			aside := s.opt.Workers > 1 && s.deregister.ns(r.pages) >= leastAsideNs && s.head < len(s.candidates)
			return Action{Kind: Deregister, Region: r.id, DueNs: due.startNs, Aside: aside}
		}
	}
	if s.head < len(s.candidates) {
		return Action{Kind: Wait, UntilNs: nowNs}
	}
	urgentNs := min(due.startNs, s.nextGateLook(nowNs))
	if reviewNs := s.nextReview(); reviewNs < urgentNs {
		return Action{Kind: Wait, UntilNs: max(reviewNs, nowNs), DueNs: urgentNs}
	}
	if urgentNs < Never {
		return Action{Kind: Wait, UntilNs: urgentNs, NoneHeld: s.held == 0}
	}
	return Action{Kind: Idle, NoneHeld: s.held == 0}
}

// begin begins a registration. It is for a worker if it is long, and the next one can't wait until it is done.
func (s *Scheduler) begin(r *region, nowNs int64) Action {
	s.due.remove(r)
	by := s.planning()
	costNs := by.costNs(r.pages)
	r.underWay, s.underWay = true, append(s.underWay, underWay{r.id, nowNs + costNs})
	s.decided = r
	a := Action{Kind: Register, Region: r.id}
	if by.isLong(r.pages) {
		by = s.planning()
		s.due.replan(&by)
		a.Aside = s.due.plan.any && s.due.plan.startNs < nowNs+costNs
	}
	return a
}

// ended notes that a registration is no longer under way.
func (s *Scheduler) ended(id mem.RegionID) {
	s.underWay = slices.DeleteFunc(s.underWay, func(u underWay) bool { return u.region == id })
	s.due.planned = false
}

// nextReview is when a registered region is to be looked at.
func (s *Scheduler) nextReview() int64 {
	_, ns := s.reviews.first()
	return ns
}

// reviewDue makes the regions candidates that it is time to look at again.
func (s *Scheduler) reviewDue(nowNs int64) {
	for range looksPerNext {
		r, ns := s.reviews.first()
		if r == nil || ns > nowNs {
			return
		}
		s.reviews.remove(r)
		s.addCandidate(r)
	}
}

// nextRegistration asks RQ what is due. What has been due for longer than its
// whole idle time is dropped: the helper was parked, and the need has passed.
func (s *Scheduler) nextRegistration(nowNs int64) nextStart {
	by := s.planning()
	for {
		next := s.due.next(nowNs, &by)
		if next.startNs > nowNs {
			return next
		}
		if nowNs-next.dueNs <= max(next.dueNs-next.region.lastEndNs, leastReviewNs) {
			return next
		}
		s.due.remove(next.region)
		if next.region.late == latePredicted {
			next.region.late = lateSlow
		}
	}
}

func (s *Scheduler) planning() planning {
	p := planning{
		register: &s.register, itemNs: s.opt.ItemNs, slackNs: s.opt.ItemNs + s.opt.ShareNs,
		workers: s.opt.Workers, underWay: s.underWay, concurrent: s.opt.Concurrent,
	}
	if s.opt.Alternates {
		p.deregister, p.itemNs, p.slackNs = &s.deregister, 2*s.opt.ItemNs, s.opt.ShareNs
	}
	return p
}

// Done reports that an action was carried out from startNs to endNs, or failed.
// startNs equal to endNs means that there was nothing to do. The communication
// path registers what could not be registered here. A region that could not be
// deregistered is most likely in use, and is looked at again.
func (s *Scheduler) Done(a Action, startNs, endNs int64, err error) {
	if a.Kind == Register {
		s.ended(a.Region)
	}
	r := s.decided
	if r == nil || r.id != a.Region || r.forgotten {
		if r = s.regions[a.Region]; r == nil {
			return
		}
	}
	defer s.hold(r)
	switch {
	case a.Kind == Register:
		r.underWay = false
		if r.registered { // it was used meanwhile
			s.addCandidate(r)
		}
		if err != nil {
			return
		}
		s.register.observe(r.pages, endNs-startNs)
		s.cost.settle(r)
		r.registered, r.readyNs, r.byHelper = true, endNs, endNs > startNs
		s.review(r, endNs)
	case err != nil:
		s.cost.settle(r)
		s.review(r, endNs)
	default:
		s.reviews.remove(r)
		s.deregister.observe(r.pages, endNs-startNs)
		if s.cost.shared {
			s.cost.leave(r, s.stallNs(r)) // its deregistration is paid
		}
		r.registered, r.releasedNs = r.lastEndNs > startNs, startNs // a use after it began registers it again
		if r.registered {
			s.addCandidate(r)
			return
		}
		if p, ok := s.pred.Next(a.Region, endNs); ok && (p.Gated || p.NextNs > endNs) {
			s.queueNextNeed(r, &p, endNs)
		}
	}
}

// Forget drops a region that its cache no longer knows. A registration of it that is under way still ends with Done.
func (s *Scheduler) Forget(id mem.RegionID) {
	if r := s.regions[id]; r != nil {
		s.due.remove(r)
		s.gated.remove(r)
		s.reviews.remove(r)
		s.cost.settle(r)
		s.cost.resize(r, 0)
		r.forgotten, r.after = true, nil
		s.hold(r)
		if s.last == r {
			s.last = nil // a region that is used next must not keep this one, and so on
		}
		delete(s.regions, id)
	}
	s.pred.Forget(id)
}

// SetWorkers replaces SchedulerOptions.Workers: the number of idle cores has changed.
func (s *Scheduler) SetWorkers(n int) { s.opt.Workers, s.due.planned = max(n, 1), false }

// SetShareNs replaces SchedulerOptions.ShareNs: the number of helpers on the
// core has changed.
func (s *Scheduler) SetShareNs(ns int64) { s.opt.ShareNs, s.due.planned = ns, false }
