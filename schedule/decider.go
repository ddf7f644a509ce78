package schedule

import "pinwheel/mem"

// Decider is what a driver asks. Scheduler is the real one; tests have others. It belongs to its driver, whose calls
// come one after the other.
type Decider interface {
	Observe(e Event, nowNs int64)
	// Missed tells of a miss. The event of that use may have been observed before.
	Missed(m Miss, nowNs int64)
	Next(nowNs int64) Action
	Done(a Action, startNs, endNs int64, err error)
	Forget(id mem.RegionID)
	// SetShareNs tells how long the helper may be kept from its core by the
	// helpers that share it: n*(t_slice + t_cs) of Li et al., CF'11, equation 2.
	SetShareNs(ns int64)
	// SetWorkers tells how many registrations may be under way at the same time. Actions whose Aside is set are for
	// workers: the Decider is asked for more before they are done.
	SetWorkers(n int)
	// Cost returns what that has cost.
	Cost() CostCounts
	// Late returns the uses that were late because of what was decided.
	Late() LateUses
	// SetShared tells whether the helper runs on the processor of its rank from now on, and returns the share of the
	// rank's time that it may take then; 0 if there is no limit. Only then, Spend counts the processor time of which
	// the driver tells, and Rest returns until when DQ is to be left alone because all is spent; a time that has passed
	// if it is not.
	SetShared(shared bool, nowNs int64) (share float64)
	Spend(cpuNs, nowNs int64)
	Rest(nowNs int64) (untilNs int64)
}

var _ Decider = (*Scheduler)(nil)
