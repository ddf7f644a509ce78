package schedule

import (
	"pinwheel/mem"
	"pinwheel/predictor"
)

const (
	// alarmNs is how far apart the needs of one exchange lie, about.
	alarmNs = 1_000_000 // 1 ms
	// alarmShare is the part of the predicted idle time, as its reciprocal, by which the predictions of one
	// exchange may differ.
	alarmShare = 32
)

// Missed says that the communication path had to register a region, or to wait for it: its need came sooner than predicted, and so will those that were to come with it. What is due at about the time of this region's
// deadline is due now. The policy of Li et al. knows no such thing.
func (s *Scheduler) Missed(m Miss, nowNs int64) {
	r := s.regions[m.Region]
	if r != nil && m.NeedNs < r.lastEndNs {
		return // the event of this use, or of a later one, was observed before
	}
	if r != nil {
		r.stalledNs = m.StalledNs
	}
	if r != nil && !r.registered {
		s.blame(r, m.NeedNs)
	}
	s.alarm(m.Region, nowNs)
	if r != nil && s.opt.KeepUnknown && !r.registered && !r.underWay {
		s.stall.observe(r.pages, m.StalledNs)
		r.missedNs = m.NeedNs
		s.hold(r)
	}
}

// isMissed reports whether communication has registered a region by itself whose event is still to come.
func (r *region) isMissed() bool { return r.missedNs > r.lastEndNs }

// alarm does what Missed says.
func (s *Scheduler) alarm(id mem.RegionID, nowNs int64) {
	if !s.opt.KeepUnknown || !s.has(predictor.MissAlarm) {
		return
	}
	r := s.regions[id]
	if r == nil {
		return
	}
	dueNs, known := s.gated.get(r)
	if ns, ok := s.due.get(r); ok {
		dueNs, known = ns, true
	}
	if !known {
		return
	}
	s.due.remove(r) // the communication path is at it
	s.gated.remove(r)
	aboutNs := max(alarmNs, (dueNs-r.lastEndNs)/alarmShare)
	fromNs, toNs := max(dueNs-aboutNs, nowNs+1), dueNs+aboutNs
	s.alarmed = s.due.appendBetween(s.alarmed[:0], fromNs, toNs)
	s.alarmed = s.gated.appendBetween(s.alarmed, fromNs, toNs)
	for _, r := range s.alarmed {
		if r.late == latePredicted {
			r.late = lateSooner // if the helper can't make up for it
		}
		s.gated.remove(r)
		s.due.put(r, nowNs)
	}
}
