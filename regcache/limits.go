package regcache

import (
	"errors"
	"fmt"
	"io/fs"

	"pinwheel/internal/cgroup"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// SetLimits changes the limits of this cache, and evicts idle regions until the rest is below
// them. Regions in use stay, even above the limits. It fails for a negative limit, and with
// the errors of evictions.
func (c *Cache) SetLimits(l Limits) error {
	if l.Bytes < 0 || l.Regions < 0 {
		return fmt.Errorf("regcache: negative limit in %+v", l)
	}
	c.mu.Lock()
	defer c.unlock()
	c.limits = l
	c.reviewCreditUnlocking()
	err := c.reclaimUnlocking()
	isOver := func() bool { return c.pinned.Bytes > c.limits.Bytes || c.pinned.Regions > c.limits.Regions }
	for isOver() {
		g := c.victim()
		if g == nil {
			break
		}
		c.stats.Evicted++
		err = errors.Join(err, c.releaseUnlocking(g))
	}
	if isOver() {
		_, failed := c.retryUnlocking()
		err = errors.Join(err, failed)
	}
	return err
}

// reserveUnlocking accounts for one registration of r before it is made. It evicts idle regions
// as needed, the least recently used first.
func (c *Cache) reserveUnlocking(r mem.Range) error {
	if err := c.fits(r); err != nil {
		return err
	}
	n := int64(r.Len())
	for {
		var lacking error
		own := true
		switch {
		case c.pinned.Regions >= c.limits.Regions:
			lacking = verbs.ErrRegions
		case n > c.limits.Bytes-c.pinned.Bytes:
			lacking = verbs.ErrPinnedMemory
		case c.opts.Group != nil:
			lacking, own = c.opts.Group.charge(n, 1), false
		}
		if lacking == nil {
			c.pinned.Bytes += n
			c.pinned.Regions++
			c.stats.PeakPinnedBytes = max(c.stats.PeakPinnedBytes, c.pinned.Bytes)
			return nil
		}
		if c.evictUnlocking(!own) {
			continue
		}
		if c.releases == 0 {
			return c.limitError(r, lacking, own)
		}
		c.waitUnlocking(&c.releaseEnded, nil)
	}
}

// fits returns an error if r could not be registered even if nothing else were. Then nothing
// is evicted for it, and neither the watcher nor the provider is called.
func (c *Cache) fits(r mem.Range) error {
	n, provider := int64(r.Len()), c.provider.Limits()
	switch {
	case n > provider.MaxRegionBytes:
		return &verbs.Error{Op: "register", Range: r, Kind: verbs.ErrRegionSize}
	case n > min(c.limits.Bytes, provider.MaxPinnedBytes):
		return c.limitError(r, verbs.ErrPinnedMemory, true)
	case c.opts.Group != nil:
		if n > c.opts.Group.most() {
			return c.limitError(r, verbs.ErrPinnedMemory, false)
		}
	}
	return nil
}

func (c *Cache) unreserve(r mem.Range) {
	c.pinned.Bytes -= int64(r.Len())
	c.pinned.Regions--
	if c.opts.Group != nil {
		c.opts.Group.uncharge(int64(r.Len()), 1)
	}
}

// limitError is the error of a limit of this cache, if own, or of the group.
func (c *Cache) limitError(r mem.Range, kind error, own bool) error {
	if own {
		return &limitError{r, kind, "the protection domain", c.limits, c.pinned}
	}
	limits, used := c.opts.Group.state()
	whose := "the process"
	if errors.Is(kind, errShare) {
		whose = "the node"
	}
	return &limitError{r, kind, whose, limits, used}
}

// reserveShare is the part of a memory cgroup's limit that is left for pages
// that are not pinned: one quarter. Pinned pages can't be reclaimed, and a group
// that is full of them is a case for the OOM killer.
const reserveShare = 4

// CgroupLimit returns how many bytes this process may pin for the sake of its
// memory cgroup: three quarters of its limit, or mem.Unlimited. root is the root of
// the file system: os.DirFS("/").
func CgroupLimit(root fs.FS) int64 {
	limit, file := cgroup.MemoryLimit(root)
	if file == "" {
		return mem.Unlimited
	}
	return limit - limit/reserveShare
}
