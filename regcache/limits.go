package regcache

import (
	"errors"
	"fmt"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// SetLimits changes the limits of this cache and evicts idle regions until
// what is left fits. What is in use stays, even above the limit.
func (c *Cache) SetLimits(l Limits) error {
	if l.Bytes < 0 || l.Regions < 0 {
		return fmt.Errorf("regcache: negative limit in %+v", l)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.maxima = l
	err := c.reap()
	for c.pinned.Bytes > c.maxima.Bytes || c.pinned.Regions > c.maxima.Regions {
		g := c.victim()
		if g == nil {
			break
		}
		c.stats.Evicted++
		err = errors.Join(err, c.release(g))
	}
	return err
}

// reserve accounts for one registration of r before it is made, evicting
// idle regions, least recently used first. mu is released while it waits.
func (c *Cache) reserve(r mem.Range) error {
	if err := c.fits(r); err != nil {
		return err
	}
	n := int64(r.Len())
	for {
		var lacking error
		own := true
		switch {
		case c.pinned.Regions >= c.maxima.Regions:
			lacking = verbs.ErrRegions
		case n > c.maxima.Bytes-c.pinned.Bytes:
			lacking = verbs.ErrPinnedMemory
		case c.opts.Group != nil:
			lacking, own = c.opts.Group.take(n), false
		}
		if lacking == nil {
			c.pinned.Bytes += n
			c.pinned.Regions++
			c.stats.PeakPinnedBytes = max(c.stats.PeakPinnedBytes, c.pinned.Bytes)
			return nil
		}
		if c.evict(!own) {
			continue
		}
		if c.drains == 0 {
			return c.limitError(r, lacking, own)
		}
		if c.drained == nil {
			c.drained = make(chan struct{})
		}
		done := c.drained
		c.mu.Unlock()
		<-done
		c.mu.Lock()
	}
}

// fits refuses what could not be registered if nothing else were: nothing is
// evicted for that, nor the watcher or the provider asked.
func (c *Cache) fits(r mem.Range) error {
	n, limits := int64(r.Len()), c.provider.Limits()
	switch {
	case n > limits.MaxRegionBytes:
		return &verbs.Error{Op: "register", Range: r, Kind: verbs.ErrRegionSize}
	case n > min(c.maxima.Bytes, limits.MaxPinnedBytes):
		return c.limitError(r, verbs.ErrPinnedMemory, true)
	case c.opts.Group != nil:
		if maxima, _ := c.opts.Group.state(); n > maxima.Bytes {
			return c.limitError(r, verbs.ErrPinnedMemory, false)
		}
	}
	return nil
}

func (c *Cache) unreserve(r mem.Range) {
	c.pinned.Bytes -= int64(r.Len())
	c.pinned.Regions--
	if c.opts.Group != nil {
		c.opts.Group.give(int64(r.Len()))
	}
}

// limitError says what lacks; own tells this cache's limits from the group's.
func (c *Cache) limitError(r mem.Range, kind error, own bool) error {
	if own {
		return &limitError{r, kind, "the protection domain", c.maxima, c.pinned}
	}
	maxima, used := c.opts.Group.state()
	return &limitError{r, kind, "the process", maxima, used}
}

// evict releases one orphan or idle region of this cache or, if asked to,
// of another one of the group. mu is released meanwhile.
func (c *Cache) evict(group bool) bool {
	c.sift()
	if n := len(c.orphans); n > 0 {
		g := c.orphans[n-1]
		c.orphans = c.orphans[:n-1]
		c.release(g)
		return true
	}
	if g := c.victim(); g != nil {
		c.stats.Evicted++
		c.release(g)
		return true
	}
	if !group || c.opts.Group == nil {
		return false
	}
	c.mu.Unlock()
	defer c.mu.Lock()
	return c.opts.Group.evictOther(c)
}

// evictSomething is evict for callers without mu, over the whole group.
func (c *Cache) evictSomething() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.evict(true)
}

// victim closes the idle region that was used least recently; nil if there is none.
func (c *Cache) victim() *region {
	var busy []*region
	defer func() {
		for _, g := range busy {
			c.lru.push(g)
		}
	}()
	for len(c.lru) > 0 {
		g := c.lru[0]
		if last := c.tab.lastUse(g.slot); last > g.used {
			c.lru.touch(g, last)
			continue
		}
		if c.tryClose(g) {
			return g
		}
		c.lru.remove(g)
		busy = append(busy, g)
	}
	return nil
}

// Clean releases everything that is idle, now, and returns how many
// registrations that were.
func (c *Cache) Clean() (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	n := 0
	for ; ; n++ {
		c.sift()
		var g *region
		if k := len(c.orphans); k > 0 {
			g, c.orphans = c.orphans[k-1], c.orphans[:k-1]
		} else if g = c.victim(); g == nil {
			break
		}
		errs = append(errs, c.release(g))
	}
	return n, errors.Join(errs...)
}
