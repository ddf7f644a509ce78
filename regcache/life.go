package regcache

import (
	"errors"
	"runtime"
	"sync/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

var (
	errMoved       = errors.New("region changed while it was registered")
	errUncacheable = errors.New("range cannot be watched")
)

// busyRetries bounds how often a call that failed with verbs.ErrBusy is repeated.
const busyRetries = 100

// enter makes a region without slot findable, absent; without a free slot it is forgotten.
func (c *Cache) enter(g *region) error {
	slot, ok := c.tab.allocate()
	if !ok {
		delete(c.byID, g.id)
		c.gone.push(g.id)
		g.id = 0
		return c.limitError(g.rng, verbs.ErrRegions)
	}
	g.slot, g.state = slot, absent
	g.packed = packAccess(g.access)
	c.setSlot(slot, g)
	c.tab.describe(slot, g.id, verbs.Region{})
	c.tab.insert(slot, g.rng, g.packed)
	c.index.add(g)
	c.absent.push(g)
	return nil
}

func (c *Cache) setSlot(slot uint32, g *region) {
	if int(slot) == len(c.bySlot) {
		c.bySlot = append(c.bySlot, nil)
	}
	c.bySlot[slot] = g
}

// leave is the opposite of enter, for a region in any state. A registration
// that the region has lives on under its slot until it is released.
func (c *Cache) leave(g *region) {
	if g.state == registered {
		c.tab.close(g.slot, g.rng)
	}
	c.tab.erase(g.slot, g.rng)
	c.index.remove(g)
	switch g.state {
	case absent:
		c.absent.remove(g)
		c.freeSlot(g)
	case registered:
		c.lru.remove(g)
		old := &region{rng: g.rng, access: g.access, slot: g.slot, state: registered, mr: g.mr, heapAt: -1}
		c.bySlot[g.slot] = old
		c.tab.retire(old.slot, true)
		c.left = append(c.left, old)
		g.state = absent
	case registering, draining: // whoever called the provider frees the slot
		c.tab.retire(g.slot, true)
		return
	}
	c.unwatch(g)
}

// sift tells, with one barrier for all, which of the registrations that left
// since the last time are in use; the others become orphans. Nobody may look at
// the references of one that left before.
func (c *Cache) sift() {
	if len(c.left) == 0 {
		return
	}
	c.tab.barrier()
	for _, g := range c.left {
		if c.tab.references(g.slot) == 0 {
			g.state = draining
			c.orphans = append(c.orphans, g)
		}
	}
	clear(c.left)
	c.left = c.left[:0]
}

// unwatch ends the watch of a region that leaves, at the next reap.
func (c *Cache) unwatch(g *region) {
	if g.watched {
		c.tokens = append(c.tokens, g.token)
		g.watched, g.verify = false, false
	}
}

// freeSlot ends a registration that is not known, or an absent region.
func (c *Cache) freeSlot(g *region) {
	c.unwatch(g)
	c.bySlot[g.slot] = nil
	c.tab.release(g.slot)
}

// forget drops a known region for good; nothing if it is gone already.
func (c *Cache) forget(g *region) {
	if !g.known() {
		return
	}
	c.leave(g)
	delete(c.byID, g.id)
	c.gone.push(g.id)
	g.id = 0
}

// reshape gives a known region, absent or registered, another range and
// rights. Its ID stays; a registration that is in use lives on until released.
func (c *Cache) reshape(g *region, r mem.Range, a verbs.Access) error {
	c.leave(g)
	g.rng, g.access, g.once = r, a, false
	return c.enter(g)
}

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
		return Ref{}, outcome, c.limitError(p, verbs.ErrRegions)
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
	c.mu.Unlock()
	mr, err := c.callRegister(g, w)
	c.mu.Lock()
	if err != nil {
		c.unreserve(g.rng)
		c.stats.Failed++
	}
	return mr, err
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

// release deregisters a registration that is closed and has no references.
// mu is released meanwhile. The region becomes absent or, unknown, nothing.
func (c *Cache) release(g *region) error {
	g.state = draining
	c.drains++
	c.mu.Unlock()
	err := c.provider.Deregister(g.mr)
	for busy := 0; errors.Is(err, verbs.ErrBusy) && busy < busyRetries; busy++ {
		runtime.Gosched()
		err = c.provider.Deregister(g.mr)
	}
	c.mu.Lock()
	c.drains--
	if err == nil {
		c.unreserve(g.rng)
	} else {
		c.stats.Leaked++ // still counted: the provider may hold the pages
	}
	if c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
	c.settle(g, absent)
	if g.known() {
		c.absent.push(g)
	} else {
		c.tab.retire(g.slot, false)
		c.freeSlot(g)
	}
	return err
}

// reap releases orphans and ends watches. mu is released meanwhile.
func (c *Cache) reap() error {
	var errs []error
	if tokens := c.tokens; len(tokens) > 0 {
		c.tokens = nil
		c.mu.Unlock()
		for _, token := range tokens {
			c.opts.Watcher.Unwatch(token)
		}
		c.mu.Lock()
	}
	for c.sift(); len(c.orphans) > 0; c.sift() {
		g := c.orphans[len(c.orphans)-1]
		c.orphans = c.orphans[:len(c.orphans)-1]
		errs = append(errs, c.release(g))
	}
	return errors.Join(errs...)
}

// lastDropped looks after a registration that is not known, when a reference was dropped.
func (c *Cache) lastDropped(slot uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checkLast(slot)
}

// checkLast is lastDropped for callers with mu.
func (c *Cache) checkLast(slot uint32) {
	c.sift()
	g := c.bySlot[slot]
	if g != nil && !g.known() && g.state == registered && c.tab.references(slot) == 0 {
		c.release(g) // a failure is counted in Stats.Leaked
	}
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
