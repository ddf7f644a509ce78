package regcache

import (
	"go.uber.org/atomic"

	"pinwheel/mem"
)

// maxForgotten bounds the IDs kept for a helper that does not ask.
const maxForgotten = 1 << 16

// forgotten holds the IDs of regions that are no longer known. Cache.mu protects all but some.
type forgotten struct {
	ids  []mem.RegionID
	lost bool
	some atomic.Bool // ids or lost is set: a cheap first look
}

func (q *forgotten) push(id mem.RegionID) {
	if len(q.ids) == maxForgotten {
		q.ids, q.lost = q.ids[:0], true
	}
	q.ids = append(roomForOne(q.ids), id)
	q.some.Store(true)
}

// Gone appends to buf the IDs of regions that were merged into others, invalidated or forgotten
// since the last call. If lost, there were more than the cache remembers: then ask Known for
// every ID that you hold. Gone takes no lock if there is nothing to report.
func (c *Cache) Gone(buf []mem.RegionID) (ids []mem.RegionID, lost bool) {
	if !c.forgotten.some.Load() {
		return buf, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	buf = append(buf, c.forgotten.ids...)
	lost = c.forgotten.lost
	c.forgotten.ids, c.forgotten.lost = c.forgotten.ids[:0], false
	c.forgotten.some.Store(false)
	return buf, lost
}

// Known reports whether an ID still names a region.
func (c *Cache) Known(id mem.RegionID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byID.get(id) != nil
}
