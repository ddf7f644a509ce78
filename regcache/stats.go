package regcache

import "slices"

// Stats counts what a cache did, exactly.
type Stats struct {
	Hits, Waited, First, Late uint64 // requests that succeeded, by Outcome
	Uncached                  uint64 // those of First and Late that were registered for one use
	Failed                    uint64 // registrations that failed for good

	HelperRegisters, HelperDeregisters uint64
	Grown, Merged                      uint64 // known regions that grew; that went into a grown one
	Evicted, Invalidated               uint64
	// Leaked is the number of registrations that could not be released. Their bytes
	// stay counted. Clean, evictions and Close try again.
	Leaked uint64

	Pinned          Usage // registered, registering and draining, as the kernel counts
	PeakPinnedBytes int64
	Known           int // regions, registered or not
	Lingering       int // retired registrations: they live until their last reference is dropped
}

// Stats returns the counts at this moment. It takes time in the number of regions.
func (c *Cache) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.counts()
	for _, g := range c.bySlot {
		if g != nil && !g.known() {
			s.Lingering++
		}
	}
	if c.closed {
		s.Lingering += int(c.unpublished.Regions)
	}
	return s
}

// LateUses is how many requests were late; see Outcome.IsLate.
func (s *Stats) LateUses() uint64 { return s.Late + s.Waited }

// Pinned returns Stats.Pinned, in little time.
func (c *Cache) Pinned() Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pinned
}

// counts is Stats without Lingering, in little time. It is called with mu.
func (c *Cache) counts() Stats {
	s := c.stats
	s.Hits += c.tab.hits()
	s.Pinned, s.Known = c.pinned, c.byID.len()
	return s
}

// Counts returns the sums over all caches that the group has had, without Known and Lingering. No sum of a counter
// falls: a cache that is closed meanwhile still counts once.
func (g *Group) Counts() Stats {
	g.mu.Lock()
	sum, caches := g.past, slices.Clone(g.caches)
	g.mu.Unlock()
	for _, c := range caches {
		c.mu.Lock()
		counted := c.counts()
		c.mu.Unlock()
		sum.Add(counted)
	}
	sum.Pinned = g.Usage()
	return sum
}

// Add adds up the counters of two caches, except for Uncached, Grown, Merged, Leaked, Known and Lingering.
func (s *Stats) Add(c Stats) {
	s.Hits += c.Hits
	s.Waited += c.Waited
	s.First += c.First
	s.Late += c.Late
	s.Failed += c.Failed
	s.HelperRegisters += c.HelperRegisters
	s.HelperDeregisters += c.HelperDeregisters
	s.Evicted += c.Evicted
	s.Invalidated += c.Invalidated
	s.Pinned.Bytes += c.Pinned.Bytes
	s.Pinned.Regions += c.Pinned.Regions
	s.PeakPinnedBytes += c.PeakPinnedBytes
}
