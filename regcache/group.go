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

// Share is what this process may register of a budget that several processes divide, as
// node.Member does it. Its methods are called by any goroutine, and all but Await with the locks of a cache.
type Share interface {
	// Most returns the whole budget: a registration beyond it is hopeless.
	Most() int64
	// Grow raises the share to at least bytes if so much is free, and returns the share.
	Grow(bytes int64) int64
	// Shrink lowers the share to bytes, of which no more are registered, and returns the share.
	Shrink(bytes int64) int64
	// Await waits until others have released what is missing to bytes, for seconds at most. It
	// reports whether the share is that large now.
	Await(bytes int64) bool
	// Settle is called once a second with the most bytes that were registered since. The process
	// should have no more than ceiling registered, and lower its share to keep.
	Settle(pinnedBytes int64) (ceiling, keep int64)
}

// errShare: the share of this process is used up, and the rest of the budget is not free.
var errShare = fmt.Errorf("the budget of the node is used up: %w", verbs.ErrPinnedMemory)

// SetShare bounds the group by a share, or by none if that is nil. The group should have nothing registered.
func (g *Group) SetShare(s Share) {
	g.mu.Lock()
	g.share, g.granted = s, 0
	g.mu.Unlock()
	for _, c := range g.members() {
		c.reviewCredit()
	}
}

// HasShare reports whether a share bounds the group.
func (g *Group) HasShare() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.share != nil
}

// permits reports whether so many bytes may be registered. It is called with mu.
func (g *Group) permits(bytes int64) bool {
	if g.share == nil || bytes <= g.granted {
		return true
	}
	g.granted = g.share.Grow(bytes)
	return bytes <= g.granted
}

// most is the largest registration that the limits of the group permit.
func (g *Group) most() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.share == nil {
		return g.limits.Bytes
	}
	return min(g.limits.Bytes, g.share.Most())
}

// await waits until there is room for so many bytes more, and reports whether there is.
func (g *Group) await(bytes int64) bool {
	g.mu.Lock()
	s, used := g.share, g.used.Bytes
	g.mu.Unlock()
	return s != nil && s.Await(used+bytes)
}

// SettleShare is to be called once a second if the group has a share: it releases idle
// registrations that others need more, and gives back what was not used lately.
func (g *Group) SettleShare() {
	g.mu.Lock()
	s, peak := g.share, g.peak
	g.mu.Unlock()
	if s == nil {
		return
	}
	ceiling, keep := s.Settle(peak)
	for g.Bytes() > ceiling && g.evictOther(nil) {
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.peak = g.used.Bytes
	if g.share == s {
		g.granted = s.Shrink(max(g.used.Bytes, keep))
	}
}

// GiveBack lowers the share to what is registered.
func (g *Group) GiveBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.share != nil {
		g.granted = g.share.Shrink(g.used.Bytes)
	}
}

// Charge accounts for bytes that are registered past the caches, and evicts idle regions to make room
// for them. It fails with verbs.ErrPinnedMemory; then they may not be registered. Uncharge ends
// the accounting, for any part of the bytes.
func (g *Group) Charge(bytes int64) error {
	for awaited := false; ; {
		err := g.charge(bytes, 0)
		switch {
		case err == nil:
			return nil
		case g.evictOther(nil):
		case err == errShare && !awaited && g.await(bytes):
			awaited = true
		default:
			return err
		}
	}
}

// TryCharge is Charge, but evicts nothing and does not wait.
func (g *Group) TryCharge(bytes int64) error { return g.charge(bytes, 0) }

// Uncharge ends the accounting for bytes after they are no longer registered.
func (g *Group) Uncharge(bytes int64) { g.uncharge(bytes, 0) }
