package schedule

import (
	"pinwheel/mem"
	"pinwheel/predictor"
)

// region is the state of one region.
type region struct {
	id         mem.RegionID
	pages      uint64
	uses       int
	lastEndNs  int64  // end of the last use
	lastPhase  uint64 // phase of the last use
	known      predictor.Known
	after      *region // that was used next, the last time; it may be forgotten
	idle       idleHistory
	gate       gateLooks
	releasedNs int64 // when its last deregistration began
	readyNs    int64 // when its last registration by the helper ended
	missedNs   int64 // when its last need began that did not find it registered, as Missed says
	stalledNs  int64 // how long the use took to get it registered whose event comes next, as Missed says; 0: not known
	early      bool  // all of its uses went past the cache
	registered bool
	candidate  bool // waits in candidates
	underWay   bool // a worker registers it
	forgotten  bool // the cache knows it no longer
	held       bool // counted in Scheduler.held

	waiting waiting

	late     lateCause // of its next use, since it was released
	byHelper bool      // its last registration by the helper was one

	asideNs float64 // set aside in the costBudget
}

// hold counts a region among those that are registered, as far as is known, if it is one of them now: also by a use that
// is under way.
func (s *Scheduler) hold(r *region) {
	held := !r.forgotten && (r.registered || r.isMissed())
	switch {
	case held && !r.held:
		s.held++
	case r.held && !held:
		s.held--
	}
	r.held = held
}

// regionOf returns the region of a use. Mostly it is the one that followed the region of the last use before, too.
func (s *Scheduler) regionOf(id mem.RegionID) *region {
	before := s.last
	if before != nil {
		if r := before.after; r != nil && r.id == id && !r.forgotten {
			s.last = r
			return r
		}
	}
	r := s.regions[id]
	if r == nil {
		r = &region{id: id}
		s.regions[id] = r
	}
	if before != nil {
		before.after = r
	}
	s.last = r
	return r
}
