package regcache

import (
	"errors"
	"runtime"
	"sync/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Why a registration was not kept.
var (
	errMoved       = errors.New("region changed while it was registered")
	errUncacheable = errors.New("range cannot be watched")
)

const (
	// busyRetries bounds how often a call that failed with verbs.ErrBusy is repeated.
	busyRetries = 100
	// movedRetries bounds how often a registration is repeated because the
	// mapping changed under it, before it is made for one use.
	movedRetries = 8
)

// register registers a region that is absent. mu is released meanwhile.
func (c *Cache) register(g *region) error {
	c.absent.remove(g)
	g.state = registering
	atomic.StoreUint64(&c.tab.epoch, c.tab.epoch+1)
	mr, err := c.pin(g, c.opts.Watcher)
	c.drain() // what changed during the registration is forgotten, g included
	switch {
	case err != nil:
		c.settle(g, absent)
		if g.known() {
			c.absent.push(g)
		} else {
			c.tab.retire(g.slot, false)
			c.freeSlot(g)
		}
		return err
	case !g.known():
		g.mr = mr
		return errors.Join(errMoved, c.release(g))
	}
	g.mr, g.once = mr, true
	c.settle(g, registered)
	c.tab.describe(g.slot, g.id, mr)
	c.open(g)
	g.used = c.tab.epoch
	c.lru.push(g)
	c.seen.add(g.rng)
	return nil
}

// registerOnce registers p for one use.
func (c *Cache) registerOnce(f *Front, p mem.Range, a verbs.Access) (Ref, Outcome, error) {
	outcome := First
	if c.seen.contains(p) {
		outcome = Late
	}
	slot, ok := c.tab.allocate()
	if !ok {
		return Ref{}, outcome, c.limitError(p, verbs.ErrRegions, true)
	}
	g := &region{rng: p, access: a, slot: slot, state: registering, heapAt: -1}
	c.setSlot(slot, g)
	mr, err := c.pin(g, nil)
	if err != nil {
		c.freeSlot(g)
		return Ref{}, outcome, err
	}
	g.mr, g.state = mr, registered
	c.tab.describe(slot, 0, mr)
	c.tab.retire(slot, true)
	c.seen.add(p)
	c.stats.Uncached++
	return c.served(f, g, g, outcome)
}

// pin reserves room, watches g if w is not nil, and registers it, evicting
// what is idle as needed. mu is released meanwhile.
func (c *Cache) pin(g *region, w Watcher) (verbs.Region, error) {
	if err := c.reserve(g.rng); err != nil {
		return verbs.Region{}, err
	}
	var mr verbs.Region
	var err error
	c.unlocked(func() { mr, err = c.callRegister(g, w) })
	if err != nil {
		c.unreserve(g.rng)
		c.stats.Failed++
	}
	return mr, err
}

// unlocked calls f without mu. Should f panic, those who hold mu find it held.
func (c *Cache) unlocked(f func()) {
	c.mu.Unlock()
	defer c.mu.Lock()
	f()
}

// callRegister is pin without mu.
func (c *Cache) callRegister(g *region, w Watcher) (mr verbs.Region, err error) {
	// Watched first: a mapping that changes between the two is noticed.
	if w != nil && !g.watched {
		if g.token, g.verify, err = w.Watch(g.rng); err != nil {
			return verbs.Region{}, errors.Join(errUncacheable, err)
		}
		g.watched = true
	}
	for busy, moved := 0, 0; ; {
		if g.verify {
			w.Pinning(g.token)
		}
		mr, err = c.provider.Register(g.rng, g.access)
		switch {
		case err == nil && g.verify:
			if err = w.Pinned(g.token); err == nil {
				return mr, nil
			}
			if moved++; moved > movedRetries {
				err = errors.Join(errUncacheable, err)
			}
			if failed := c.provider.Deregister(mr); failed != nil || moved > movedRetries {
				return verbs.Region{}, errors.Join(err, failed)
			}
			continue
		case err == nil:
			return mr, nil
		case errors.Is(err, verbs.ErrBusy) && busy < busyRetries:
			busy++
			runtime.Gosched()
			continue
		case (errors.Is(err, verbs.ErrPinnedMemory) || errors.Is(err, verbs.ErrRegions)) && c.evictSomething():
			continue
		}
		return verbs.Region{}, err
	}
}

// open makes a registered region available to hits, unless the watcher has
// to confirm each.
func (c *Cache) open(g *region) {
	if !g.verify {
		c.tab.open(g.slot, g.rng, keysOf(g.mr))
	}
}
