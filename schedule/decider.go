package schedule

import "pinwheel/mem"

// Decider is what a driver asks. Scheduler is the real one; tests have others. It belongs to its driver, whose calls
// come one after the other.
type Decider interface {
	Observe(e Event, nowNs int64)
	// Missed tells of a need at needNs that did not find its region registered. The event of that use may have been
	// observed before.
	Missed(id mem.RegionID, needNs, nowNs int64)
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
	// Budget returns what bounds the helper's processor time: always the same one.
	Budget() *Budget
}

var _ Decider = (*Scheduler)(nil)
