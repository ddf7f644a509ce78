package regcache

import "errors"

// Idle regions make room for others, the least recently used first.

// evictUnlocking releases one registration: a reclaimable one, the least recently used idle one,
// one that could not be released before or, if group, one of another cache of the group. It
// reports whether there was any. Failures are counted in Stats.Leaked.
func (c *Cache) evictUnlocking(group bool) (done bool) {
	c.publishUnlocking()
	c.classifyRetired()
	if len(c.reclaimable) > 0 {
		_ = c.releaseUnlocking(c.nextReclaimable())
		return true
	}
	if g := c.victim(); g != nil {
		c.stats.Evicted++
		_ = c.releaseUnlocking(g)
		return true
	}
	if len(c.unreleased) > 0 {
		if n, _ := c.retryUnlocking(); n > 0 {
			return true
		}
	}
	if !group || c.opts.Group == nil {
		return false
	}
	_ = c.withoutLock(func() error { // the others tell of their faults themselves
		done = c.opts.Group.evictOther(c)
		return nil
	})
	return done
}

// evictForOthers is evictUnlocking for another cache of the group.
func (c *Cache) evictForOthers() bool {
	c.mu.Lock()
	defer c.unlock()
	return c.evictUnlocking(false)
}

// victim closes and returns the idle region that was used least recently, nil if there is none.
func (c *Cache) victim() *region {
	var busy []lruItem
	defer func() {
		for _, b := range busy {
			c.lru.add(b.region, b.used)
		}
	}()
	for len(c.lru) > 0 {
		first := c.lru[0]
		if last := c.tab.lastUse(first.region.slot); last > first.used {
			c.lru.touch(first.region, last)
			continue
		}
		if c.tryClose(first.region) {
			return first.region
		}
		c.lru.remove(first.region)
		busy = append(busy, first)
	}
	return nil
}

// Clean releases all idle registrations now and returns their number.
func (c *Cache) Clean() (int, error) {
	c.mu.Lock()
	defer c.unlock()
	var errs []error
	n := 0
	c.publishUnlocking()
	c.closeIdle(c.lru.regions()...)
	for ; ; n++ {
		c.classifyRetired()
		var g *region
		if len(c.reclaimable) > 0 {
			g = c.nextReclaimable()
		} else if g = c.victim(); g == nil {
			break
		}
		errs = append(errs, c.releaseUnlocking(g))
	}
	late, err := c.retryUnlocking()
	return n + late, errors.Join(append(errs, err)...)
}
