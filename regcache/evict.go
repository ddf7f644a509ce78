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

// lru is a binary heap of registered regions by the epoch of their last use, with the least
// recent one first and the older region first among equals. Hits don't touch it: it knows a
// lower bound of each region's last use, which Cache.victim corrects when the region comes first.
type lru []lruItem

type lruItem struct {
	used   uint64 // epoch of last use, as far as the heap knows
	region *region
}

func (a lruItem) before(b lruItem) bool {
	return a.used < b.used || a.used == b.used && a.region.id < b.region.id
}

func (h *lru) add(g *region, used uint64) {
	*h = append(roomForOne(*h), lruItem{used, g})
	h.up(len(*h) - 1)
}

func (h *lru) remove(g *region) {
	i, last := int(g.heapIndex), len(*h)-1
	moved := (*h)[last]
	(*h)[last] = lruItem{}
	*h = (*h)[:last]
	if i < last {
		(*h)[i] = moved
		h.fix(i)
	}
	g.heapIndex = -1
}

// touch moves a region to where its last use puts it.
func (h lru) touch(g *region, used uint64) {
	h[g.heapIndex].used = used
	h.fix(int(g.heapIndex))
}

// fix moves item i to where it belongs.
func (h lru) fix(i int) {
	h.down(i)
	h.up(i) // does nothing if the item has moved
}

func (h lru) up(i int) {
	item := h[i]
	for i > 0 && item.before(h[(i-1)/2]) {
		h.put(i, h[(i-1)/2])
		i = (i - 1) / 2
	}
	h.put(i, item)
}

func (h lru) down(i int) {
	item := h[i]
	for {
		child := 2*i + 1
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		if child >= len(h) || !h[child].before(item) {
			break
		}
		h.put(i, h[child])
		i = child
	}
	h.put(i, item)
}

func (h lru) put(i int, item lruItem) {
	h[i] = item
	item.region.heapIndex = int32(i)
}

// regions returns those of the heap.
func (h lru) regions() []*region {
	all := make([]*region, len(h))
	for i, item := range h {
		all[i] = item.region
	}
	return all
}

// absentList holds the absent regions, in the order of their release.
type absentList struct{ first, last *region }

// links are the neighbours of a region in an absentList.
type links struct{ before, after *region }

func (l *absentList) push(g *region) {
	g.absent = links{before: l.last}
	if l.last == nil {
		l.first = g
	} else {
		l.last.absent.after = g
	}
	l.last = g
}

func (l *absentList) remove(g *region) {
	at := g.absent
	if at.before == nil {
		l.first = at.after
	} else {
		at.before.absent.after = at.after
	}
	if at.after == nil {
		l.last = at.before
	} else {
		at.after.absent.before = at.before
	}
	g.absent = links{}
}
