package replay

import "pinwheel/schedule"

// helperCore is an idle core that the helpers of a node share. They take turns: who has waited
// longest gets the core for a time slice, and keeps it for less if it has nothing more to do. What
// a helper has begun it carries out, so a long registration may outlast the slice.
type helperCore struct {
	wake    func(s *seat, atNs int64)
	sliceNs int64

	holder     *seat
	last       *seat // who held it before
	heldFromNs int64
	sliceEndNs int64
	waiting    []*seat // in order of arrival
	busyNs     int64   // since the last look
}

// request asks for the core at t, or for leave to go on. ok is false if the helper must wait until
// nextNs, or, if that is never, until the core wakes it.
func (c *helperCore) request(s *seat, t int64) (nextNs int64, ok bool) {
	switch {
	case s.waits:
		return never, false
	case c.holder == s && (t < c.sliceEndNs || len(c.waiting) == 0):
		return 0, true
	case c.holder == s:
		c.free(t)
		c.enqueue(s, t)
		c.handOver(t)
		return never, false
	case c.holder != nil:
		c.enqueue(s, t)
		return never, false
	}
	startNs := c.give(s, t)
	return startNs, startNs == t
}

func (c *helperCore) enqueue(s *seat, t int64) {
	s.waits, s.waitsFromNs = true, t
	c.waiting = append(c.waiting, s)
}

// give lets s hold the core, which is free, from t on, and returns when it can start.
func (c *helperCore) give(s *seat, t int64) (startNs int64) {
	startNs = t
	if c.last != nil && c.last != s {
		startNs += schedule.SwitchNs
	}
	c.holder, c.heldFromNs, c.sliceEndNs = s, t, startNs+c.sliceNs
	return startNs
}

func (c *helperCore) free(t int64) {
	c.busyNs += t - c.heldFromNs
	c.holder, c.last = nil, c.holder
}

// handOver gives the core, which is free, to the helper that has waited longest.
func (c *helperCore) handOver(t int64) {
	if len(c.waiting) == 0 {
		return
	}
	s := c.waiting[0]
	c.waiting = c.waiting[:copy(c.waiting, c.waiting[1:])]
	s.waits = false
	s.rank.sharing.HelperWaitNs += t - s.waitsFromNs
	c.wake(s, c.give(s, t))
}

// leave takes s from the core at t, whether it holds it or waits for it.
func (c *helperCore) leave(s *seat, t int64) {
	if c.holder == s {
		c.free(t)
		c.handOver(t)
		return
	}
	for i, w := range c.waiting {
		if w == s {
			s.waits = false
			c.waiting = append(c.waiting[:i], c.waiting[i+1:]...)
			return
		}
	}
}

// load is the share of the time since the last look in which a helper held the core.
func (c *helperCore) load(t, intervalNs int64) float64 {
	if c.holder != nil {
		c.busyNs += t - c.heldFromNs
		c.heldFromNs = t
	}
	busyNs := c.busyNs
	c.busyNs = 0
	return float64(busyNs) / float64(intervalNs)
}

// users is how many helpers hold the core or wait for it.
func (c *helperCore) users() int {
	if c.holder == nil {
		return len(c.waiting)
	}
	return len(c.waiting) + 1
}
