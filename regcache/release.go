package regcache

import (
	"errors"
	"runtime"
	"slices"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// registration is one that could not be released: the provider may hold its
// pages, so its bytes stay counted.
type registration struct {
	rng mem.Range // as it was reserved
	mr  verbs.Region
}

// releaseUnlocking deregisters a registration that is closed and has no
// references. The region becomes absent or, unknown, nothing.
func (c *Cache) releaseUnlocking(g *region) error {
	g.state = draining
	c.drains++
	defer func() {
		c.drains--
		wake(&c.drained)
		c.settle(g, absent)
	}()
	return c.withdrawUnlocking(registration{g.rng, g.mr})
}

// withdrawUnlocking deregisters, and gives back what reserveUnlocking took,
// unless the provider may still hold the pages.
func (c *Cache) withdrawUnlocking(r registration) (err error) {
	err = errUnended
	defer func() {
		if !c.keep(r, err) {
			c.unreserve(r.rng)
		}
	}()
	err = c.deregisterUnlocking(r.mr)
	return err
}

// errUnended is the outcome of a call that has not returned: until it does, or
// for good if it ends its goroutine.
var errUnended = errors.New("call did not return")

// deregisterUnlocking deregisters, and repeats what fails for the moment only.
func (c *Cache) deregisterUnlocking(mr verbs.Region) error {
	return c.outside(func() error {
		err := c.provider.Deregister(mr)
		for busy := 0; errors.Is(err, verbs.ErrBusy) && busy < busyRetries; busy++ {
			runtime.Gosched()
			err = c.provider.Deregister(mr)
		}
		return err
	})
}

// keep notes a registration whose deregistration failed, to be tried again. It
// reports whether the provider may still hold the pages.
func (c *Cache) keep(r registration, failed error) bool {
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

// retryUnlocking tries once more to release what could not be released. It
// returns how much of it went, and why the rest did not.
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

// reapUnlocking releases orphans and ends watches.
func (c *Cache) reapUnlocking() error {
	var errs []error
	if tokens := c.tokens; len(tokens) > 0 {
		c.tokens = nil
		c.unwatchUnlocking(tokens)
	}
	for c.sift(); len(c.orphans) > 0; c.sift() {
		errs = append(errs, c.releaseUnlocking(c.orphan()))
	}
	return errors.Join(errs...)
}

// unwatchUnlocking ends watches. A fault ends that of one token only.
func (c *Cache) unwatchUnlocking(tokens []uint64) {
	for len(tokens) > 0 {
		_ = c.outside(func() error { // it returns nothing, and unlock tells of a fault
			for len(tokens) > 0 {
				token := tokens[0]
				tokens = tokens[1:]
				c.opts.Watcher.Unwatch(token)
			}
			return nil
		})
	}
}

// orphan takes one of the orphans, of which there must be some.
func (c *Cache) orphan() *region {
	last := len(c.orphans) - 1
	g := c.orphans[last]
	c.orphans[last] = nil
	c.orphans = c.orphans[:last]
	return g
}

// lastDropped looks after a registration that is not known, when a reference was dropped.
func (c *Cache) lastDropped(slot uint32) {
	c.mu.Lock()
	defer c.unlock()
	c.checkLastUnlocking(slot)
}

// checkLastUnlocking is lastDropped for callers with mu.
func (c *Cache) checkLastUnlocking(slot uint32) {
	c.sift()
	if g := c.bySlot[slot]; c.isLeft(g) {
		_ = c.releaseUnlocking(g) // a failure is counted in Stats.Leaked
	}
}

// isLeft reports whether g is a registration that lived for its references
// only, of which none is left. It must have been sifted.
func (c *Cache) isLeft(g *region) bool {
	return g != nil && !g.known() && g.state == registered && c.tab.references(g.slot) == 0
}

// Sweep does what is left of hits that C code gave up (pwt_get of table.h
// returned 0). A look at one word if there were none.
func (c *Cache) Sweep() {
	if !c.tab.hasUndone() {
		return
	}
	c.mu.Lock()
	defer c.unlock()
	_ = c.reapUnlocking() // failures are counted in Stats.Leaked
}

// tryClose ends hits on a registered region; false, changing nothing, if it is in use.
func (c *Cache) tryClose(g *region) bool {
	if c.tab.references(g.slot) != 0 {
		return false
	}
	c.tab.close(g.slot, g.rng)
	c.tab.barrier()
	if c.tab.references(g.slot) != 0 {
		c.open(g)
		return false
	}
	c.lru.remove(g)
	g.state = draining
	return true
}
