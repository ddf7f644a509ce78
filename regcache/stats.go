package regcache

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
	s := c.stats
	s.Hits += c.tab.hits()
	s.Pinned, s.Known = c.pinned, len(c.byID)
	for _, g := range c.bySlot {
		if g != nil && !g.known() {
			s.Lingering++
		}
	}
	return s
}
