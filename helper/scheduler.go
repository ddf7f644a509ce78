package helper

import (
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/queue"
	"pinwheel/verbs"
)

// SchedulerOptions are the parameters of a Scheduler. Costs must come from a
// calibration; the zero values of the others are those of paper 004.
type SchedulerOptions struct {
	// Costs are the provider's costs to begin with; they are updated from
	// every operation that the helper does.
	Costs verbs.Costs
	// ItemNs is the cost of everything around one registration: a look at DQ
	// and RQ, hashing, the cache (t_hash + t_cache + t_insert + t_update of
	// paper 004, section 3.2).
	ItemNs int64
	// ShareNs is n*(t_slice + t_cs) of paper 004, equation 2: how long others
	// that share the helper's core may keep it waiting. 0 on a core of its own.
	ShareNs int64
	// Keep says what happens to regions of which nothing is known and to
	// those that were expected and did not come. If false, the first are
	// deregistered at once and the second stay registered: paper 004.
	Keep bool
}

// region is what the scheduler knows of one region.
type region struct {
	pages      uint64
	uses       int
	lastEndNs  int64  // end of the last use
	lastPhase  uint64 // phase of the last use
	longest    idleness
	releasedNs int64 // when its last deregistration began
	registered bool
	unused     bool // registered by the helper and not used since
	asleep     bool // was released on suspicion once
	candidate  bool // waits in candidates
}

// idleness measures how long a region went unused.
type idleness struct {
	ns     int64
	phases uint64
}

func (i *idleness) extend(j idleness) {
	i.ns, i.phases = max(i.ns, j.ns), max(i.phases, j.phases)
}

// Scheduler decides when regions are deregistered and registered again. It
// is a pure state machine: it reads no clock, starts nothing and never
// blocks; the same calls give the same actions. It belongs to one driver and
// is not safe for concurrent use.
//
// The driver repeats: give it one event, if there is one, with Observe; ask
// Next; carry the action out; report it with Done. Times are nanoseconds of
// the driver's clock, the one of the events.
type Scheduler struct {
	opt        SchedulerOptions
	pred       predictor.Predictor
	regions    map[mem.RegionID]*region
	due        *queue.Deadlines // RQ: deregistered regions, by when they must be ready
	reviews    *queue.Deadlines // registered regions, by when to think again about them
	candidates []mem.RegionID   // regions that may be worth deregistering now
	register   estimate
	deregister estimate

	// A phase is a burst of uses that overlap in time. Counting phases tells
	// a program that computes from one that communicates without a region.
	phase      uint64
	phaseEndNs int64
	longest    idleness // of all regions
	suspicion  suspicion
}

// NewScheduler returns a Scheduler that predicts with p.
func NewScheduler(p predictor.Predictor, o SchedulerOptions) *Scheduler {
	return &Scheduler{
		opt:        o,
		pred:       p,
		regions:    make(map[mem.RegionID]*region),
		due:        queue.NewDeadlines(),
		reviews:    queue.NewDeadlines(),
		register:   newEstimate(o.Costs.Register),
		deregister: newEstimate(o.Costs.Deregister),
		suspicion:  newSuspicion(),
	}
}

// Observe learns from one completed use of a region.
func (s *Scheduler) Observe(e Event, nowNs int64) {
	if e.StartNs >= s.phaseEndNs {
		s.phase++
	}
	s.phaseEndNs = max(s.phaseEndNs, e.EndNs)
	r := s.regions[e.Region]
	if r == nil {
		r = &region{}
		s.regions[e.Region] = r
	}
	if r.uses > 0 {
		r.longest.extend(idleness{e.StartNs - r.lastEndNs, s.phase - r.lastPhase})
		s.longest.extend(r.longest)
	}
	r.pages = e.Pages
	r.uses++
	r.lastEndNs, r.lastPhase = e.EndNs, s.phase
	if e.EndNs > r.releasedNs { // else the event was overtaken by the deregistration
		r.registered, r.unused = true, false
		s.due.Remove(e.Region)
		s.reviews.Remove(e.Region)
	}
	s.wakeSuspects(nowNs)
	s.pred.Observe(e.Use)
	for _, id := range s.pred.Changed() { // e.Region is one of them
		c := s.regions[id]
		switch {
		case c == nil:
		case c.registered:
			s.consider(id, c)
		default:
			s.expect(id, nowNs)
		}
	}
}

// consider makes a registered region a candidate for deregistration.
func (s *Scheduler) consider(id mem.RegionID, r *region) {
	if !r.candidate {
		r.candidate = true
		s.candidates = append(s.candidates, id)
	}
}

// expect queues a deregistered region for its next need, if one is predicted.
func (s *Scheduler) expect(id mem.RegionID, nowNs int64) {
	if p, ok := s.pred.Next(id, nowNs); ok {
		s.due.Put(id, p.NextNs)
	}
}

// Next decides what to do at nowNs: first what is due, then what can be
// released without making anything late, else wait.
func (s *Scheduler) Next(nowNs int64) Action {
	startNs, first, due := s.latestStart()
	if due && nowNs >= startNs {
		return Action{Kind: Register, Region: first}
	}
	for {
		id, ns, ok := s.reviews.First()
		if !ok || ns > nowNs {
			break
		}
		s.reviews.Remove(id)
		s.consider(id, s.regions[id])
	}
	for len(s.candidates) > 0 {
		id := s.candidates[0]
		r := s.regions[id]
		if r != nil && r.registered && due && nowNs+s.deregister.ns(r.pages)+s.opt.ItemNs > startNs {
			return Action{Kind: Wait, UntilNs: startNs} // not before what is due
		}
		s.candidates = s.candidates[1:]
		if r == nil {
			continue
		}
		r.candidate = false
		if r.registered && s.release(id, r, nowNs) {
			return Action{Kind: Deregister, Region: id}
		}
	}
	_, reviewNs, review := s.reviews.First()
	switch {
	case due && (!review || startNs <= reviewNs):
		return Action{Kind: Wait, UntilNs: startNs}
	case review:
		return Action{Kind: Wait, UntilNs: reviewNs}
	}
	return Action{Kind: Idle}
}

// Done reports that an action was carried out from startNs to endNs, or
// failed. After a failed deregistration the region is in use and comes back
// as an event; a failed registration is left to the communication path.
func (s *Scheduler) Done(a Action, startNs, endNs int64, err error) {
	r := s.regions[a.Region]
	if r == nil {
		return
	}
	switch {
	case a.Kind == Register:
		s.due.Remove(a.Region)
		if err != nil {
			return
		}
		s.register.observe(r.pages, endNs-startNs)
		r.registered, r.unused = true, true
		s.review(a.Region, r, endNs)
	case a.Kind == Deregister && err == nil:
		s.reviews.Remove(a.Region)
		s.deregister.observe(r.pages, endNs-startNs)
		r.registered, r.releasedNs = false, startNs
		if p, ok := s.pred.Next(a.Region, endNs); ok && p.NextNs > endNs {
			s.due.Put(a.Region, p.NextNs)
		}
	}
}

// Forget drops a region that its cache no longer knows.
func (s *Scheduler) Forget(id mem.RegionID) {
	s.due.Remove(id)
	s.reviews.Remove(id)
	delete(s.regions, id)
	s.pred.Forget(id)
}

// mostDue bounds how far latestStart looks into RQ. What lies behind so many
// registrations is not urgent.
const mostDue = 64

// latestStart returns the last moment at which the helper can begin with RQ
// and still have every region ready in time, and the region to begin with.
//
// This is the deadline adjustment of paper 004, section 3.2 (neighbours in RQ
// lie at least the cost of one RQ item plus one DQ item apart), computed when
// it is needed rather than written into the queue: a region that leaves the
// queue takes its share with it.
func (s *Scheduler) latestStart() (startNs int64, first mem.RegionID, ok bool) {
	var busyNs int64
	n := 0
	for id, dueNs := range s.due.Ascend() {
		busyNs += s.register.ns(s.regions[id].pages) + s.opt.ItemNs
		ns := dueNs - busyNs - s.opt.ItemNs - s.opt.ShareNs
		if n == 0 {
			startNs, first = ns, id
		}
		startNs = min(startNs, ns)
		if n++; n == mostDue {
			break
		}
	}
	return startNs, first, n > 0
}
