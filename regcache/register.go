package regcache

import (
	"errors"
	"runtime"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Reasons for which a registration is not kept.
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

// registerUnlocking registers a region that is absent, ahead of any use if a is not nil.
func (c *Cache) registerUnlocking(g *region, a *ahead) error {
	c.endAbsence(g)
	g.state = registering
	pinned := false
	defer func() {
		if g.state != registering {
			return
		}
		if pinned { // something of ours did not return
			c.keepUnreleased(c.registrationOf(g), errUnended)
		}
		c.settle(g, absent)
	}()
	storeWord(&c.tab.epoch, c.tab.epoch+1)
	mr, err := c.pinUnlocking(g, c.opts.Watcher, a)
	if err != nil {
		return errors.Join(err, c.drainUnlocking())
	}
	c.tab.describe(g.slot, g.id, mr)
	pinned = true
	// This forgets all regions whose mappings changed during the registration, g included.
	if err := c.drainUnlocking(); err != nil {
		return errors.Join(err, c.releaseUnlocking(g))
	}
	if !g.known() {
		return errors.Join(errMoved, c.releaseUnlocking(g))
	}
	g.wasRegistered = true
	c.open(g)
	c.lru.add(g, c.tab.epoch)
	c.everRegistered.add(g.rng, g.access)
	c.settle(g, registered)
	return nil
}

// registerOnceUnlocking registers the pages of a request for this one use.
func (c *Cache) registerOnceUnlocking(q *request) (Ref, error) {
	if q.ahead != nil {
		return Ref{}, ErrNotKept
	}
	q.outcome = c.firstOrLate(q.pages, q.access)
	slot, ok := c.tab.allocate()
	if !ok {
		return Ref{}, c.limitError(q.pages, verbs.ErrRegions, true)
	}
	g := &region{rng: q.pages, access: q.access, slot: slot, state: registering, heapIndex: -1}
	c.setSlot(slot, g)
	defer func() {
		if g.state == registering {
			c.settle(g, absent)
		}
	}()
	mr, err := c.pinUnlocking(g, nil, nil)
	if err != nil {
		return Ref{}, err
	}
	c.tab.describe(slot, 0, mr)
	c.tab.retire(slot, true)
	c.settle(g, registered)
	c.everRegistered.add(g.rng, g.access)
	c.stats.Uncached++
	return c.served(q, g, g), nil
}

// pinUnlocking reserves room for g, watches it if w is not nil, touches it if a is not nil, and registers it. It evicts
// idle regions as needed. If it succeeds, the caller owns the registration.
func (c *Cache) pinUnlocking(g *region, w Watcher, a *ahead) (mr verbs.Region, err error) {
	if err := c.reserveUnlocking(g.rng); err != nil {
		return mr, err
	}
	done := false
	var undone error // of a registration that was made and is not kept
	defer func() {
		if !done && !c.keepUnreleased(registration{g.rng, mr}, undone) {
			c.unreserve(g.rng)
		}
	}()
	// Watched first: a mapping that changes between the two is noticed.
	if w != nil && !g.watched {
		if err := c.watchUnlocking(g, w); err != nil {
			c.stats.Failed++
			return mr, err
		}
	}
	if err := c.touchUnlocking(g, a); err != nil {
		return mr, err
	}
	for busy, moved := 0, 0; ; {
		err = c.withoutLock(func() (err error) {
			if g.verify {
				w.Pinning(g.token)
			}
			mr, err = c.provider.Register(g.rng, g.access)
			return err
		})
		switch {
		case err == nil:
			undone = errUnended
			if err = c.acceptUnlocking(g, w); err == nil {
				done = true
				return mr, nil
			}
			moved++
			again := errors.Is(err, mem.ErrChanged) && (moved == 1 || g.verify && moved <= movedRetries)
			if undone = c.deregisterUnlocking(mr); undone == nil && again {
				continue
			}
			err = errors.Join(err, undone)
			if !again && !errors.Is(err, ErrFault) {
				err = errors.Join(errUncacheable, err)
			}
		case errors.Is(err, verbs.ErrBusy) && busy < busyRetries:
			busy++
			runtime.Gosched()
			continue
		case (errors.Is(err, verbs.ErrPinnedMemory) || errors.Is(err, verbs.ErrRegions)) && c.evictUnlocking(true):
			continue
		}
		c.stats.Failed++
		return mr, err
	}
}

// acceptUnlocking asks the watcher, if there is one, whether a registration that was made may be kept. If its word is
// enough, one answer holds for as long as g is watched: what could change it is noticed.
func (c *Cache) acceptUnlocking(g *region, w Watcher) error {
	if w == nil || g.accepted && !g.verify {
		return nil
	}
	err := c.withoutLock(func() error { return w.Pinned(g.token) })
	g.accepted = err == nil
	return err
}

// watchUnlocking begins to watch g, or fails with errUncacheable.
func (c *Cache) watchUnlocking(g *region, w Watcher) error {
	err := c.withoutLock(func() (err error) {
		g.token, g.verify, err = w.Watch(g.rng)
		return err
	})
	if err != nil {
		return errors.Join(errUncacheable, err)
	}
	g.watched = true
	return nil
}

// open makes a registered region available to hits, unless the watcher must revalidate each.
func (c *Cache) open(g *region) {
	if !g.verify {
		c.tab.open(g.slot, g.rng, c.tab.desc(g.slot).keys)
	}
}
