package helper

// SetShareNs replaces SchedulerOptions.ShareNs: the number of helpers on the
// core has changed.
func (s *Scheduler) SetShareNs(ns int64) { s.opt.ShareNs, s.due.planned = ns, false }

var _ Decider = (*Scheduler)(nil)
