package regcache

import "pinwheel/internal/fault"

// How Cache.mu is held. A public method takes it once, and gives it back by a deferred unlock. A
// method that lets go of it meanwhile is named ...Unlocking. It does so by withoutLock or
// waitUnlocking only, which take it again whatever happens. After such a call everything that mu
// protects may have changed, except for a region that the caller has made registering or
// draining: only the caller ends that state, by a deferred settle.

// unlock ends a public method: it gives mu back, and then reports a fault that was contained
// meanwhile to Options.OnFault.
func (c *Cache) unlock() {
	f := c.fault
	c.fault = nil
	c.mu.Unlock()
	if f != nil && c.opts.OnFault != nil {
		_ = fault.Contain(func() error { c.opts.OnFault(f); return nil }) // nobody is left to tell
	}
}

// unlockInto is unlock for the helper's calls, which return the fault instead.
func (c *Cache) unlockInto(err *error) {
	defer c.mu.Unlock()
	if c.fault != nil && fault.In(*err) == nil {
		*err = c.fault
	}
	c.fault = nil
}

// withoutLock calls f, which calls the provider or the watcher, without mu. A panic of f becomes
// an error.
func (c *Cache) withoutLock(f func() error) (err error) {
	c.calls++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.calls--
		wake(&c.callEnded)
		c.note(err)
	}()
	return fault.Contain(f)
}

// note remembers the fault in an error, if there is one, for unlock.
func (c *Cache) note(err error) {
	if c.fault == nil {
		c.fault = fault.In(err)
	}
}

// waitUnlocking sleeps until wake is called for the same channel, or until another one, which may be nil, is closed.
func (c *Cache) waitUnlocking(ended *chan struct{}, or <-chan struct{}) {
	if *ended == nil {
		*ended = make(chan struct{})
	}
	done := *ended
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-done:
	case <-or:
	}
}

// wake ends all waitUnlocking for a channel.
func wake(waiting *chan struct{}) {
	if *waiting != nil {
		close(*waiting)
		*waiting = nil
	}
}

// settle ends a provider call for g, and wakes those who wait for it.
func (c *Cache) settle(g *region, s state) {
	g.state = s
	wake(&g.done)
	if s != absent {
		return
	}
	if g.known() {
		c.beginAbsence(g)
		return
	}
	if c.tab.isRetired(g.slot) {
		c.tab.retire(g.slot, false)
	}
	c.freeSlot(g)
}
