package regcache

import (
	"errors"
	"runtime"
	"slices"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// registration is all that is needed to release a registration whose region is gone. The provider
// may hold its pages, so its bytes stay counted.
type registration struct {
	rng mem.Range // as it was reserved
	mr  verbs.Region
}

// registrationOf returns the registration of a region that has one.
func (c *Cache) registrationOf(g *region) registration {
	return registration{g.rng, c.tab.desc(g.slot).registration()}
}

// releaseUnlocking releases the registration of a region that is closed and has no references. A
// known region becomes absent; one that is not known is gone.
func (c *Cache) releaseUnlocking(g *region) error {
	g.state = draining
	c.releases++
	defer func() {
		c.releases--
		wake(&c.releaseEnded)
		c.settle(g, absent)
	}()
	return c.withdrawUnlocking(c.registrationOf(g))
}

// withdrawUnlocking deregisters, and unreserves the bytes unless the provider may still hold the
// pages.
func (c *Cache) withdrawUnlocking(r registration) (err error) {
	err = errUnended
	defer func() {
		if !c.keepUnreleased(r, err) {
			c.unreserve(r.rng)
		}
	}()
	err = c.deregisterUnlocking(r.mr)
	return err
}

// errUnended is the error of a call that has not returned, and never will if it has ended its
// goroutine.
var errUnended = errors.New("call did not return")

// deregisterUnlocking deregisters, and repeats a call that failed with verbs.ErrBusy.
func (c *Cache) deregisterUnlocking(mr verbs.Region) error {
	return c.withoutLock(func() error {
		err := c.provider.Deregister(mr)
		for busy := 0; errors.Is(err, verbs.ErrBusy) && busy < busyRetries; busy++ {
			runtime.Gosched()
			err = c.provider.Deregister(mr)
		}
		return err
	})
}

// keepUnreleased notes a registration whose deregistration failed, to be tried again. It
// reports whether the provider may still hold the pages.
func (c *Cache) keepUnreleased(r registration, failed error) bool {
	if !mayHold(failed) {
		return false
	}
	c.stats.Leaked++
	c.unreleased = append(c.unreleased, r)
	return true
}

// mayHold reports whether a provider may hold what it failed to deregister.
func mayHold(failed error) bool {
	return failed != nil && !errors.Is(failed, verbs.ErrUnknownRegion) && !errors.Is(failed, verbs.ErrClosed)
}

// retryUnlocking tries once more to release each of the registrations that could not be released.
// It returns how many it has released, and the errors of the others.
func (c *Cache) retryUnlocking() (n int, err error) {
	for left := len(c.unreleased); left > 0 && len(c.unreleased) > 0; left-- {
		r := c.unreleased[0]
		c.unreleased = slices.Delete(c.unreleased, 0, 1)
		c.stats.Leaked--
		if failed := c.withdrawUnlocking(r); mayHold(failed) {
			err = errors.Join(err, failed)
		} else {
			n++
		}
	}
	return n, err
}

// reclaimUnlocking releases what is reclaimable, and ends watches.
func (c *Cache) reclaimUnlocking() error {
	var errs []error
	if tokens := c.endedWatches; len(tokens) > 0 {
		c.endedWatches = nil
		c.unwatchUnlocking(tokens)
	}
	for c.classifyRetired(); len(c.reclaimable) > 0; c.classifyRetired() {
		if err := c.releaseUnlocking(c.nextReclaimable()); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// unwatchUnlocking ends watches. A fault ends that of one token only.
func (c *Cache) unwatchUnlocking(tokens []uint64) {
	for len(tokens) > 0 {
		_ = c.withoutLock(func() error { // it returns nothing, and unlock tells of a fault
			for len(tokens) > 0 {
				token := tokens[0]
				tokens = tokens[1:]
				c.opts.Watcher.Unwatch(token)
			}
			return nil
		})
	}
}

// nextReclaimable takes one of the reclaimable registrations, of which there must be some.
func (c *Cache) nextReclaimable() *region {
	last := len(c.reclaimable) - 1
	g := c.reclaimable[last]
	c.reclaimable[last] = nil
	c.reclaimable = c.reclaimable[:last]
	return g
}

// reclaimSlot releases a retired registration if the reference just dropped was its last.
func (c *Cache) reclaimSlot(slot uint32) {
	c.mu.Lock()
	defer c.unlock()
	c.reclaimSlotUnlocking(slot)
}

// reclaimSlotUnlocking is reclaimSlot for callers with mu.
func (c *Cache) reclaimSlotUnlocking(slot uint32) {
	c.classifyRetired()
	if g := c.bySlot[slot]; c.isReclaimable(g) {
		_ = c.releaseUnlocking(g) // a failure is counted in Stats.Leaked
	}
}

// isReclaimable reports whether g is a retired registration without references. A barrier
// must have passed since it was retired.
func (c *Cache) isReclaimable(g *region) bool {
	return g != nil && !g.known() && g.state == registered && c.tab.references(g.slot) == 0
}

// Sweep releases registrations that a hit of C code kept from being released, and then gave up:
// call it when pwt_get of table.h returned 0. Mostly it only reads one word.
func (c *Cache) Sweep() {
	if !c.tab.hasUndone() {
		return
	}
	c.mu.Lock()
	defer c.unlock()
	_ = c.reclaimUnlocking() // failures are counted in Stats.Leaked
}

// tryClose ends hits on a registered region, which becomes draining. It changes nothing and returns false if
// the region is in use.
func (c *Cache) tryClose(g *region) bool {
	if c.closeIdle(g); !g.closed {
		return false
	}
	g.closed = false
	c.lru.remove(g)
	g.state = draining
	return true
}

// closeIdle ends hits on those of the regions that nobody uses, with one barrier for all. The next
// request for one of them opens it again.
func (c *Cache) closeIdle(regions ...*region) {
	barrier := false
	for _, g := range regions {
		if g.state == registered && !g.closed && c.tab.references(g.slot) == 0 {
			c.tab.close(g.slot, g.rng)
			g.closed, barrier = true, true
		}
	}
	if !barrier {
		return
	}
	c.tab.barrier()
	for _, g := range regions {
		if g.closed && c.tab.references(g.slot) != 0 {
			c.reopen(g)
		}
	}
}

// reopen makes a registered region available to hits again. It must come before a reference is counted.
func (c *Cache) reopen(g *region) {
	if g.closed {
		g.closed = false
		c.open(g)
	}
}
