package helper

import (
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/queue"
)

// alarmNs is how far apart the needs of one exchange lie, about.
const alarmNs = 1_000_000 // 1 ms

// Missed says that the communication path has to register a region: its need came sooner than
// predicted, and so will those that were to come with it. What is due within a millisecond of this
// region's deadline is due now, and so is what was released because the program was silent. The
// policy of Li et al. knows no such thing.
func (s *Scheduler) Missed(id mem.RegionID, nowNs int64) {
	if !s.opt.KeepUnknown || s.opt.Without&predictor.MissAlarm != 0 {
		return
	}
	s.endSilence(nowNs)
	dueNs, known := s.due.deadlines.Get(id)
	if !known {
		dueNs, known = s.gated.Get(id)
	}
	if !known {
		return
	}
	s.due.remove(id) // the communication path is at it
	s.gated.Remove(id)
	s.alarm(s.due.deadlines, dueNs, nowNs)
	s.alarm(s.gated, dueNs, nowNs)
}

// alarm makes those regions due that a queue has within alarmNs of a deadline.
func (s *Scheduler) alarm(q *queue.Deadlines, dueNs, nowNs int64) {
	s.alarmed = s.alarmed[:0]
	for id, ns := range q.Ascend() {
		if ns > dueNs+alarmNs {
			break
		}
		if ns >= dueNs-alarmNs && ns > nowNs {
			s.alarmed = append(s.alarmed, id)
		}
	}
	for _, id := range s.alarmed {
		s.gated.Remove(id)
		s.due.put(id, s.regions[id].pages, nowNs)
	}
}
