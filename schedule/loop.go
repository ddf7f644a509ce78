package schedule

import "pinwheel/mem"

// LoopOptions say what a Loop drives, and how it asks its driver: the functions are called in the middle of its methods.
type LoopOptions struct {
	Decider Decider
	Pacer   Pacer // the zero value if the driver hears of every event at once, and its sleeps end on time
	// Missed moves to m the needs of which the Decider has not heard so far, and Gone appends to buf the regions that
	// the cache has forgotten since the last call.
	Missed func(m *Misses, nowNs int64)
	Gone   func(buf []mem.RegionID) []mem.RegionID
	// Prepare says which regions are to be deregistered next. nil: it is of no use, and they are deregistered one at a time.
	Prepare func(ids []mem.RegionID)
}

// Loop is what every driver of a helper does in its turns, between its clock and the operations on regions: the comment of
// the package has the order. Like Scheduler, it is pure and belongs to one driver.
type Loop struct {
	LoopOptions
	RestNs int64 // until when DQ is left alone, as the Decider says: set by Begin; 0: it is not

	misses Misses
	gone   []mem.RegionID // scratch
	behind bool           // back from a park or a rest, and DQ was not yet found empty
	pending
}

// NewLoop returns a Loop that has decided nothing so far.
func NewLoop(o LoopOptions) Loop {
	return Loop{LoopOptions: o, pending: pending{plannedNs: Never}}
}

// Begin begins a turn, and reports whether the driver may look at DQ. After a rest it may look once, whatever the Decider
// says: where a wake-up takes what the rest has earned, it never would.
func (l *Loop) Begin(nowNs int64) (looks bool) {
	switch {
	case l.RestNs == 0:
		if untilNs := l.Decider.Rest(nowNs); untilNs > nowNs {
			l.RestNs = untilNs
		}
	case l.RestNs <= nowNs:
		l.RestNs = 0
	}
	looks = l.RestNs == 0
	l.hear(nowNs)
	l.behind = l.behind || !looks
	return looks
}

// hear tells the Decider of misses, mostly before the events of those uses arrive. While the helper is behind, they are
// later than what the Decider knows.
func (l *Loop) hear(nowNs int64) {
	if !l.behind {
		l.Missed(&l.misses, nowNs)
		l.Pacer.Missed(l.misses.Tell(l.Decider, nowNs))
	}
}

// Observe takes in an event of DQ. If the helper is behind, the Decider must learn of all that is in DQ before it is asked:
// the program went on meanwhile.
func (l *Loop) Observe(e *Event, nowNs int64) (behind bool) {
	l.Pacer.Used(e.EndNs)
	l.Decider.Observe(*e, nowNs)
	return l.behind
}

// Emptied tells that DQ is empty: no earlier event can bring a region back that is gone.
func (l *Loop) Emptied(nowNs int64) {
	l.behind = false
	l.gone = l.Gone(l.gone[:0])
	for _, id := range l.gone {
		l.Decider.Forget(id)
	}
	l.hear(nowNs) // what was missed while it was behind
}

// SleepNs returns how long to sleep, with nothing to do before w: until the Decider allows a look, or as the Pacer says.
func (l *Loop) SleepNs(nowNs int64, w Waiting) int64 {
	if l.RestNs > nowNs {
		return l.Pacer.RestNs(nowNs, w, l.RestNs)
	}
	return l.Pacer.PlanNs(nowNs, w)
}

// SetShared tells whether the helper runs on the processor of its rank from now on, as one of this many helpers there.
func (l *Loop) SetShared(shared bool, helpers int, nowNs int64) {
	l.RestNs = 0
	l.Pacer.SetShare(l.Decider.SetShared(shared, nowNs), helpers)
}

// Parked tells that the helper is or was parked: what was decided and planned before comes to nothing.
func (l *Loop) Parked(nowNs int64) {
	for _, a := range l.decided {
		l.Decider.Done(a, nowNs, nowNs, errSkipped)
	}
	l.decided, l.plannedNs, l.behind = l.decided[:0], Never, true
}
