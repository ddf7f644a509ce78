package regcache

import (
	"fmt"
	"os"
	"slices"
	"sync"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Group is shared by the caches of one process, one for each protection domain. It limits what
// all of them together have registered, and lets each evict idle regions of the others when
// the kernel or those limits refuse a registration. Safe for concurrent use.
type Group struct {
	// mu protects all below. A leaf lock, taken inside Cache.mu.
	mu     sync.Mutex
	caches []*Cache
	limits Limits
	used   Usage
	peak   int64 // most bytes since SettleShare
	past   Stats // counters of caches that were closed

	share   Share // nil: none
	granted int64 // the share, which must be no more than share says; lowered under mu
}

// NewGroup returns a group without caches and without a limit on the number of regions. For
// maxBytes, 0 stands for CgroupLimit and mem.Unlimited for no limit.
func NewGroup(maxBytes int64) *Group {
	if maxBytes == 0 {
		maxBytes = CgroupLimit(os.DirFS("/"))
	}
	return &Group{limits: Limits{maxBytes, mem.Unlimited}}
}

// Bytes returns the bytes of Usage.
func (g *Group) Bytes() int64 { return g.Usage().Bytes }

// Usage returns the size of the registrations of all caches.
func (g *Group) Usage() Usage {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.used
}

// SetLimits changes the limits, and evicts idle regions until the rest is below them. Regions
// in use stay, even above the limits. It fails for a negative limit.
func (g *Group) SetLimits(l Limits) error {
	if l.Bytes < 0 || l.Regions < 0 {
		return fmt.Errorf("regcache: negative limit in %+v", l)
	}
	g.mu.Lock()
	g.limits = l
	g.mu.Unlock()
	for _, c := range g.members() {
		c.reviewCredit()
	}
	for over := true; over; {
		u := g.Usage()
		over = (u.Bytes > l.Bytes || u.Regions > l.Regions) && g.evictOther(nil)
	}
	return nil
}

// Clean is Cache.Clean for all caches.
func (g *Group) Clean() (int, error) {
	n := 0
	for _, c := range g.members() {
		k, err := c.Clean()
		n += k
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (g *Group) members() []*Cache {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.caches)
}

// evictOther releases an idle region of another cache than c, which must not
// be locked, nor any other.
func (g *Group) evictOther(c *Cache) bool {
	for _, o := range g.members() {
		if o == c {
			continue
		}
		if o.evictForOthers() {
			return true
		}
	}
	return false
}

func (g *Group) state() (limits Limits, used Usage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limits = g.limits
	if g.share != nil {
		limits.Bytes = min(limits.Bytes, g.granted)
	}
	return limits, g.used
}

// charge accounts for so much more, or returns the limit that it would exceed.
func (g *Group) charge(bytes, regions int64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case regions > g.limits.Regions-g.used.Regions:
		return verbs.ErrRegions
	case bytes > g.limits.Bytes-g.used.Bytes:
		return verbs.ErrPinnedMemory
	case !g.permits(g.used.Bytes + bytes):
		return errShare
	}
	g.used.Bytes += bytes
	g.used.Regions += regions
	g.peak = max(g.peak, g.used.Bytes)
	return nil
}

// count accounts for registrations that were made, whatever the limits.
func (g *Group) count(u Usage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used.Bytes += u.Bytes
	g.used.Regions += u.Regions
	g.peak = max(g.peak, g.used.Bytes)
}

func (g *Group) uncharge(bytes, regions int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.used.Bytes -= bytes
	g.used.Regions -= regions
}

func (g *Group) join(c *Cache) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caches = append(g.caches, c)
}

// leave is called with the lock of a cache that was closed.
func (g *Group) leave(c *Cache) {
	counted := c.counts()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.past.Add(counted)
	g.caches = slices.DeleteFunc(g.caches, func(o *Cache) bool { return o == c })
}
