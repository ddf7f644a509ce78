package schedule

import "pinwheel/predictor"

// gateLooks say when to look into DQ for the event that opens the gate of one region. Events don't wake the
// helper, and the need may follow soon after this one.
type gateLooks struct {
	fromNs   int64 // when the region would have to be registered without a gate
	latestNs int64 // when the event came at the latest so far, or somewhat later
	stepNs   int64
	untilNs  int64 // when to register without the event
}

const (
	// leastStepNs is the shortest pause between looks for an event that is overdue.
	leastStepNs = 50_000 // 50 us
	// overdueSteps: an event that was never so late is looked for at pauses of 1/8 of what it is overdue.
	overdueSteps = 8
)

// awaitGate plans the looks for the event that a prediction waits for. If a look does not find it, the
// need can't come sooner than it ever came after this event. So the next look is early enough that
// leaves the time to register. An event that has not proved right yet is given up in the end, but only once: what is
// released after that waits for it.
func (s *Scheduler) awaitGate(r *region, p *predictor.Prediction, nowNs int64) {
	leadNs := s.register.ns(r.pages) + s.opt.ItemNs + s.opt.ShareNs
	r.gate = gateLooks{
		fromNs: p.NextNs - leadNs, latestNs: p.LatestNs, stepNs: max(p.AfterNs-leadNs, leastStepNs), untilNs: p.GateNs,
	}
	if p.GateNs <= nowNs {
		r.gate.untilNs = Never
	}
	s.gated.put(r, r.gate.fromNs)
}

// nextGateLook returns when to look for the next event.
func (s *Scheduler) nextGateLook(nowNs int64) int64 {
	for {
		r, ns := s.gated.first()
		if r == nil || ns > nowNs {
			return ns
		}
		g := &r.gate
		if nowNs >= g.untilNs {
			s.gated.remove(r)
			s.due.put(r, g.untilNs)
			return nowNs
		}
		stepNs := g.stepNs
		if nowNs > g.latestNs {
			stepNs = max(stepNs, (nowNs-g.fromNs)/overdueSteps)
		}
		s.gated.put(r, min(nowNs+stepNs, g.untilNs))
	}
}
