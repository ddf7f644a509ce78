package regcache

import (
	"os"
	"slices"
	"sync"
)

// Group is what the caches of one process share: a limit on the bytes pinned
// by all of them, and the eviction of each other's idle regions when the
// kernel or that limit refuses more. Safe for concurrent use.
type Group struct {
	// mu protects all below. A leaf lock, taken inside Cache.mu.
	mu       sync.Mutex
	caches   []*Cache
	maxBytes int64
	bytes    int64
}

// NewGroup returns a group without caches. 0 stands for what the memory
// cgroup allows, mem.Unlimited for no limit.
func NewGroup(maxBytes int64) *Group {
	if maxBytes == 0 {
		maxBytes = CgroupLimit(os.DirFS("/"))
	}
	return &Group{maxBytes: maxBytes}
}

// Bytes returns what all caches have registered, registering and draining.
func (g *Group) Bytes() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bytes
}

// SetLimit changes the limit and evicts idle regions until what is left fits.
func (g *Group) SetLimit(maxBytes int64) {
	g.mu.Lock()
	g.maxBytes = maxBytes
	g.mu.Unlock()
	for over := true; over; {
		g.mu.Lock()
		over = g.bytes > g.maxBytes
		g.mu.Unlock()
		over = over && g.evictOther(nil)
	}
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
		o.mu.Lock()
		done := o.evict(false)
		o.mu.Unlock()
		if done {
			return true
		}
	}
	return false
}

func (g *Group) take(bytes int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if bytes > g.maxBytes-g.bytes {
		return false
	}
	g.bytes += bytes
	return true
}

func (g *Group) give(bytes int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bytes -= bytes
}

func (g *Group) join(c *Cache) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caches = append(g.caches, c)
}

func (g *Group) leave(c *Cache) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.caches = slices.DeleteFunc(g.caches, func(o *Cache) bool { return o == c })
}
