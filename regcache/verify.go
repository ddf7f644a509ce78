package regcache

import (
	"fmt"
	"sync/atomic"
)

// Verify checks that the cache's data structures agree with each other, and returns the first
// contradiction. It takes time in the number of regions, and misses wait for it.
func (c *Cache) Verify() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tab.mem == nil {
		return nil // closed and unmapped
	}
	checks := []func() error{c.verifyRegions, c.verifyAccounts, c.verifyTable, c.verifyEverRegistered}
	for _, check := range checks {
		if err := check(); err != nil {
			return fmt.Errorf("regcache: inconsistent: %w", err)
		}
	}
	return nil
}

func (c *Cache) verifyRegions() error {
	var err error
	known, absents := 0, 0
	for g := range c.byID.all() {
		switch {
		case c.byID.get(g.id) != g:
			err = fmt.Errorf("region %d is not found by its ID", g.id)
		case c.bySlot[g.slot] != g:
			err = fmt.Errorf("region %d is not in its slot %d", g.id, g.slot)
		case g.rng != g.rng.PageAligned() || g.rng.Empty():
			err = fmt.Errorf("region %d has range %v", g.id, g.rng)
		case (g.heapIndex >= 0) != (g.state == registered):
			err = fmt.Errorf("region %d is %v, at %d of the idle heap", g.id, g.state, g.heapIndex)
		case g.state == registered && !c.registrationOf(g).mr.Range.Contains(g.rng):
			err = fmt.Errorf("region %d of %v is registered as %v", g.id, g.rng, c.registrationOf(g).mr.Range)
		case g.state == registered && c.registrationOf(g).mr.Access != g.access:
			err = fmt.Errorf("region %d has rights %#x, registered %#x", g.id, g.access, c.registrationOf(g).mr.Access)
		case g.state != registered && c.tab.confined && c.tab.references(g.slot) != 0:
			err = fmt.Errorf("region %d is %v with %d references", g.id, g.state, c.tab.references(g.slot))
		}
		if known++; g.state == absent {
			absents++
		}
		if err != nil {
			return err
		}
	}
	if known != c.byID.len() {
		return fmt.Errorf("%d regions are known, %d counted", known, c.byID.len())
	}
	for g := c.absent.first; g != nil; g = g.absent.after {
		if absents--; g.state != absent || !g.known() || g.absent.after == nil && g != c.absent.last {
			return fmt.Errorf("region %d, %v, is queued as absent", g.id, g.state)
		}
	}
	if absents != 0 {
		return fmt.Errorf("%d more regions are absent than queued as such", absents)
	}
	for i, item := range c.lru {
		if item.region.heapIndex != int32(i) || i > 0 && item.before(c.lru[(i-1)/2]) {
			return fmt.Errorf("the idle heap is out of order at %d", i)
		}
	}
	return nil
}

func (c *Cache) verifyAccounts() error {
	var sum Usage
	var retired uint32
	for slot, g := range c.bySlot {
		if g == nil {
			continue
		}
		if g.slot != uint32(slot) {
			return fmt.Errorf("slot %d holds a region of slot %d", slot, g.slot)
		}
		if g.state != absent {
			sum.Bytes += g.bytes()
			sum.Regions++
		}
		if !g.known() {
			retired++
		}
	}
	sum.Bytes += c.unpublished.Bytes
	sum.Regions += c.unpublished.Regions
	for _, r := range c.unreleased {
		sum.Bytes += int64(r.rng.Len())
		sum.Regions++
	}
	// Calls under way have or have not reserved yet.
	if c.quiet() && sum != c.pinned {
		return fmt.Errorf("%+v registered, %+v accounted", sum, c.pinned)
	}
	if c.quiet() && retired != atomic.LoadUint32(&c.tab.retired) {
		return fmt.Errorf("%d registrations are retired, the table says %d", retired, c.tab.retired)
	}
	if c.stats.Leaked != uint64(len(c.unreleased)) {
		return fmt.Errorf("%d registrations leaked, %d kept to be tried again", c.stats.Leaked, len(c.unreleased))
	}
	// More than the limit is possible after SetLimits only, and only in use.
	return nil
}

// quiet reports whether no provider call is under way.
func (c *Cache) quiet() bool {
	if c.calls > 0 {
		return false
	}
	for _, g := range c.bySlot {
		if g != nil && g.inTransition() {
			return false
		}
	}
	return true
}

// verifyTable compares every entry with its region.
func (c *Cache) verifyTable() error {
	for _, b := range c.tab.areas {
		if err := c.verifyArea(c.tab.area(*b.cursor), b); err != nil {
			return err
		}
	}
	var byClass [64]int
	for g := range c.byID.all() {
		byClass[class(g.rng.Len())]++
	}
	for k, n := range byClass {
		if bit := c.tab.classes >> k & 1; c.tab.byClass[k] != n || (bit != 0) != (n > 0) {
			return fmt.Errorf("class %d: %d regions, the table counts %d, bit %d", k, n, c.tab.byClass[k], bit)
		}
	}
	return nil
}

func (c *Cache) verifyArea(a area, b areaLoad) error {
	var used, displaced uint64
	for i := range a.mask() + 1 {
		e := *a.at(i)
		if e.state&slotMask == 0 {
			continue
		}
		if used++; e.place(a) != i {
			displaced++
		}
		slot := uint32(e.state&slotMask) - 1
		g := c.bySlot[slot]
		switch {
		case g == nil || !g.known():
			return fmt.Errorf("entry %d is of slot %d, which holds no known region", i, slot)
		case g.closed && g.state != registered:
			return fmt.Errorf("region %d is closed, but %v", g.id, g.state)
		case (e.state&openBit != 0) != (g.state == registered && !g.verify && !g.closed):
			return fmt.Errorf("entry %d is open or not, but region %d is %v", i, g.id, g.state)
		case e.low != uint64(g.rng.Start)|packAccess(g.access) || e.high&^whichMask != uint64(g.rng.End):
			return fmt.Errorf("entry %d says %#x-%#x, region %d is %v", i, e.low, e.high, g.id, g.rng)
		case e.state&openBit != 0 && e.keys != c.tab.desc(slot).keys:
			return fmt.Errorf("entry %d has keys %#x, region %d %#x", i, e.keys, g.id, c.tab.desc(slot).keys)
		case a.find(e) != i:
			return fmt.Errorf("entry %d is not where a reader looks", i)
		}
	}
	if used != b.used || displaced != b.displaced {
		return fmt.Errorf("%d entries, %d displaced; counted %d and %d", used, displaced, b.used, b.displaced)
	}
	return nil
}

func (c *Cache) verifyEverRegistered() error {
	for g := range c.byID.all() {
		if g.state == registered && !c.everRegistered.with(g.access).Contains(g.rng) {
			return fmt.Errorf("region %d at %v is registered but counts as never registered", g.id, g.rng)
		}
	}
	return nil
}
