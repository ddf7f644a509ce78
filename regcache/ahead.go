package regcache

import (
	"context"
	"errors"
	"fmt"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Register registers a known region, for the helper thread. It does nothing if the region is
// registered or being registered. It evicts idle regions, and fails, as Acquire does, and with
// ErrUnknown.
func (c *Cache) Register(id mem.RegionID) error {
	_, err := c.TryRegister(id)
	return err
}

// TryRegister is Register, and reports whether there was anything to do: for a helper that
// measures the cost of a registration.
func (c *Cache) TryRegister(id mem.RegionID) (did bool, err error) {
	c.mu.Lock()
	defer c.unlockInto(&err)
	for {
		c.publishUnlocking()
		if err := c.drainUnlocking(); err != nil {
			return false, err
		}
		g := c.byID.get(id)
		switch {
		case g == nil:
			return false, fmt.Errorf("%w: %d", ErrUnknown, id)
		case g.state == registered || g.state == registering:
			return false, nil
		case g.state == draining:
			c.waitUnlocking(&g.done, nil)
			continue
		}
		c.stats.HelperRegisters++
		err = c.registerUnlocking(g, nil)
		switch {
		case errors.Is(err, errUncacheable): // only the communication path can register it
			c.refuse(g, nil)
		case !errors.Is(err, errMoved):
			return true, err
		}
		return true, errors.Join(fmt.Errorf("%w: %d", ErrUnknown, id), err)
	}
}

// Deregister releases the registration of a region that nobody uses, for the helper thread. The
// region stays known. It does nothing if the region is not registered. It fails with ErrInUse,
// ErrUnknown, and the provider's errors.
func (c *Cache) Deregister(id mem.RegionID) error {
	_, err := c.TryDeregister(id)
	return err
}

// TryDeregister is Deregister, and reports whether there was anything to do.
func (c *Cache) TryDeregister(id mem.RegionID) (did bool, err error) {
	c.mu.Lock()
	defer c.unlockInto(&err)
	c.publishUnlocking()
	g := c.byID.get(id)
	switch {
	case g == nil:
		return false, fmt.Errorf("%w: %d", ErrUnknown, id)
	case g.state == absent || g.state == draining:
		return false, nil
	case g.state == registering || !c.tryClose(g):
		return false, fmt.Errorf("%w: %d, %v", ErrInUse, id, g.rng)
	}
	c.stats.HelperDeregisters++
	return true, c.releaseUnlocking(g)
}

// CloseIdle ends hits on those of the regions that nobody uses, with one memory barrier of all threads
// (membarrier(2)) instead of one in each Deregister: for a helper that is about to
// deregister them. A region that is needed first is available again.
func (c *Cache) CloseIdle(ids []mem.RegionID) {
	c.mu.Lock()
	defer c.unlock()
	c.publishUnlocking()
	regions := make([]*region, 0, len(ids))
	for _, id := range ids {
		if g := c.byID.get(id); g != nil {
			regions = append(regions, g)
		}
	}
	c.closeIdle(regions...)
}

// Identify returns the ID of the region that stands for a request, for a use that was registered past the cache.
// The region becomes known, as absent, if it is not. There is none if a region had to grow for it, if the
// memory can't be kept, or if no more can be known.
func (c *Cache) Identify(r mem.Range, a verbs.Access) (id mem.RegionID, known bool) {
	p, err := pages(r)
	if err != nil {
		return 0, false
	}
	c.mu.Lock()
	defer c.unlock()
	c.publishUnlocking()
	if c.refusalOf(p, a) != nil {
		return 0, false
	}
	g := c.bestFit(p, a)
	if g == nil && !c.closed && len(c.growable(p, a)) == 0 {
		g, err = c.add(p, a)
	}
	if g == nil || err != nil {
		return 0, false
	}
	return g.id, true
}

// Range returns the range of a known region.
func (c *Cache) Range(id mem.RegionID) (mem.Range, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if g := c.byID.get(id); g != nil {
		return g.rng, true
	}
	return mem.Range{}, false
}

// ErrNotKept means that memory is registered for single uses only: the cache can't share these rights, or can't notice
// that the mapping changes.
var ErrNotKept = errors.New("regcache: this memory is registered for each use, and not kept registered")

// Prepare registers r ahead of its first use and keeps it registered, as Acquire and Release do, but is no use itself.
// It fails as Acquire does, with ErrNotKept, and with the error of ctx. Then it has registered nothing.
//
// touch provides the pages before the provider pins them, which may take minutes. It is called without a lock, once
// room is reserved below every limit and changes of the mapping are noticed, with the pages of r or of the region that
// stands for r. If r is registered already it is not called.
//
// A call of the provider can't be cut short. If ctx ends meanwhile, Prepare deregisters afterwards, unless somebody
// uses the memory by then.
func (c *Cache) Prepare(ctx context.Context, r mem.Range, a verbs.Access, touch func(mem.Range) error) error {
	p, err := pages(r)
	if err != nil {
		return err
	}
	q := &request{local: c.shared, pages: p, access: a, ahead: &ahead{ctx, touch}}
	c.mu.Lock()
	defer c.unlock()
	_, err = c.serveUnlocking(q)
	return err
}

// ahead is what a request has whose memory is registered ahead of any use.
type ahead struct {
	ctx   context.Context
	touch func(mem.Range) error
}

// ended is closed when nobody wants the memory any more.
func (a *ahead) ended() <-chan struct{} {
	if a == nil {
		return nil
	}
	return a.ctx.Done()
}

func (a *ahead) err() error {
	if a == nil {
		return nil
	}
	return a.ctx.Err()
}

// touchUnlocking provides the pages of a region that is about to be registered.
func (c *Cache) touchUnlocking(g *region, a *ahead) error {
	if a == nil {
		return nil
	}
	return c.withoutLock(func() error { return a.touch(g.rng) })
}

// withdrawAheadUnlocking releases what was registered for a request that has ended meanwhile, unless it is in use.
func (c *Cache) withdrawAheadUnlocking(g *region, a *ahead) error {
	err := a.err()
	if c.tryClose(g) {
		err = errors.Join(err, c.releaseUnlocking(g))
	}
	return err
}
