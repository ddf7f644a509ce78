package helper

import (
	"pinwheel/mem"
	"pinwheel/predictor"
)

// gateLooks say when to look into DQ for the event that opens the gate of one region. Events don't wake the
// helper, and the need may follow soon after this one.
type gateLooks struct {
	fromNs   int64 // when the region would have to be registered without a gate
	latestNs int64 // when the event came at the latest so far, or somewhat later
	stepNs   int64
}

const (
	// leastStepNs is the shortest pause between looks for an event that is overdue.
	leastStepNs = 50_000 // 50 us
	// overdueSteps: an event that was never so late is looked for at pauses of 1/8 of what it is overdue.
	overdueSteps = 8
)

// awaitGate plans the looks for the event that a prediction waits for. If a look does not find it, the
// need can't come sooner than it ever came after this event. So the next look is early enough that
// leaves the time to register.
func (s *Scheduler) awaitGate(id mem.RegionID, r *region, p *predictor.Prediction) {
	leadNs := s.register.ns(r.pages) + s.opt.ItemNs + s.opt.ShareNs
	r.gate = gateLooks{fromNs: p.NextNs - leadNs, latestNs: p.LatestNs, stepNs: max(p.AfterNs-leadNs, leastStepNs)}
	s.gated.Put(id, r.gate.fromNs)
}

// nextGateLook returns when to look for the next event.
func (s *Scheduler) nextGateLook(nowNs int64) int64 {
	for {
		id, ns, any := s.gated.First()
		switch {
		case !any:
			return never
		case ns > nowNs:
			return ns
		}
		g := &s.regions[id].gate
		stepNs := g.stepNs
		if nowNs > g.latestNs {
			stepNs = max(stepNs, (nowNs-g.fromNs)/overdueSteps)
		}
		s.gated.Put(id, nowNs+stepNs)
	}
}
