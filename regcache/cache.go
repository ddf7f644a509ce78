package regcache

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// Cache is a registration cache over one provider: one protection domain.
type Cache struct {
	provider verbs.Provider
	opts     Options
	shared   *Local // for callers without a Local of their own

	// mu protects all below, and the writing of the table. It exists for
	// misses; hits don't take it. It is never held while the provider or the
	// watcher (but for Drain, and what GrantWatcher adds) is called, nor while
	// waiting: see lock.go. Group.mu is taken inside it.
	mu     sync.Mutex
	closed bool
	tab    *table
	unmap  runtime.Cleanup // of the table, with the garbage
	// idleLocals are those given back.
	idleLocals []*Local

	// The known regions.
	byID           idIndex
	lastID         mem.RegionID
	lru            lru        // the registered ones
	absent         absentList // the absent ones, in the order of their release
	forgotten      forgotten  // IDs of those no longer known
	everRegistered everRegistered

	// bySlot has the known regions, and the registrations that live until their
	// last reference is dropped. Those are first retired, and reclaimable once
	// classifyRetired has found no reference.
	bySlot      []*region
	retired     []*region // since the last classifyRetired: perhaps in use
	reclaimable []*region // closed and without references: to be released

	// What C threads may register by themselves (publish.go). All nil or zero if they may not.
	grants       *grants
	grantedIDs   [grantCount]mem.RegionID // of new regions, by grant
	grantWatcher GrantWatcher
	hasCredit    bool   // C threads have credit
	unpublished  Usage  // accounted for, and to be published: was registered before the credit was withdrawn
	published    uint64 // grants.posted that has been dealt with

	refusals     []*refusal    // the oldest first
	endedWatches []uint64      // tokens to be given back
	changesLost  bool          // the last Drain failed: some changes are not known
	drained      atomic.Uint64 // tab.seen, for who has no lock

	limits     Limits
	pinned     Usage
	unreleased []registration // whose deregistration failed: to be tried again
	stats      Stats
	fault      *fault.Fault // contained, to be told of at the next unlock

	// Calls of the provider and the watcher under way, and among them releases.
	// The channels are made by who waits, and closed when one ends.
	calls        int
	callEnded    chan struct{}
	releases     int
	releaseEnded chan struct{}
}

// Usage is the size of all registrations, including those being made or released.
type Usage struct {
	Bytes   int64
	Regions int64
}

// String formats u as "1.5 GiB in 7 regions".
func (u Usage) String() string {
	bytes, regions := mem.FormatBytes(uint64(u.Bytes)), fmt.Sprint(u.Regions)
	if u.Bytes == mem.Unlimited {
		bytes = "inf"
	}
	if u.Regions == mem.Unlimited {
		regions = "inf"
	}
	return bytes + " in " + regions + " regions"
}

// Limits bound a Usage. mem.Unlimited stands for no bound.
type Limits = Usage

// New returns an empty cache over p, which must outlive it.
func New(p verbs.Provider, o Options) (*Cache, error) {
	o.EnsureDefaults(p.Limits())
	if o.MaxBytes < 0 || o.MaxRegions < 0 || o.KnownRegions < 0 {
		return nil, fmt.Errorf("regcache: negative limit in %+v", o)
	}
	// Besides the known regions, old registrations of grown ones need slots
	// until their last reference is dropped.
	tab, err := newTable(o.KnownRegions+o.KnownRegions/2+64, o.Confined)
	if err != nil {
		return nil, err
	}
	c := &Cache{provider: p, opts: o, tab: tab, limits: Limits{o.MaxBytes, o.MaxRegions}}
	if o.AnyCovering {
		tab.flags |= flagAnyCovering
	}
	if o.Watcher != nil {
		tab.watch(o.Watcher.Word())
	}
	if c.shared, err = c.newLocal(!o.Confined); err != nil {
		return nil, errors.Join(err, tab.unmap())
	}
	if o.Group != nil {
		o.Group.join(c)
	}
	c.startGrants()
	c.unmap = runtime.AddCleanup(c, func(t *table) { t.unmap() }, tab)
	return c, nil
}

// Thread returns a Local for the calling goroutine, which must give it back with
// Local.Close. It takes 8 bytes of memory for each region. It fails with ErrClosed, and if
// there is no address space for it.
func (c *Cache) Thread() (*Local, error) {
	c.mu.Lock()
	defer c.unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if n := len(c.idleLocals); n > 0 {
		f := c.idleLocals[n-1]
		c.idleLocals = c.idleLocals[:n-1]
		return f, nil
	}
	return c.newLocal(false)
}

// Close gives the Local back. References taken through it stay counted. A second Close does
// nothing.
func (f *Local) Close() {
	f.c.mu.Lock()
	defer f.c.mu.Unlock()
	if !slices.Contains(f.c.idleLocals, f) {
		f.c.idleLocals = append(f.c.idleLocals, f)
	}
}

// Acquire is Local.Acquire for callers without a Local. A hit costs an atomic
// read-modify-write of memory that all such callers share.
func (c *Cache) Acquire(r mem.Range, a verbs.Access) (Ref, Outcome, error) {
	if c.opts.Confined {
		storeWord(&c.tab.epoch, loadWord(&c.tab.epoch)+1)
	}
	return c.shared.Acquire(r, a)
}

// Release is Local.Release for callers without a Local.
func (c *Cache) Release(r Ref) { c.shared.Release(r) }

// IsRegistered is Local.IsRegistered for callers without a Local.
func (c *Cache) IsRegistered(r mem.Range, a verbs.Access) (Ref, bool) {
	return c.shared.IsRegistered(r, a)
}

// closeTries bounds how often Close tries to release a registration that fails to be released.
const closeTries = 3

// Close ends the cache. From then on every call fails with ErrClosed, except for Release. Idle
// registrations are released now, those in use when their last reference is dropped. Close
// waits for calls of the provider and the watcher that are under way. It may be called at
// any time, and a second call does nothing. It returns the errors of the registrations that
// it could not release.
//
// The table is unmapped at once if no reference and no Local is left, and if the cache was
// never used without a Local, since nobody knows when such a use has ended. Otherwise the
// garbage collector unmaps it.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	c.withdrawCredit()
	c.publishUnlocking()
	for _, g := range c.bySlot { // to which nothing is added any more
		for g != nil && g.known() && g.inTransition() {
			c.waitUnlocking(&g.done, nil)
		}
		if g != nil && g.known() {
			c.forget(g)
		}
	}
	c.forgiveIn(mem.Range{Start: 0, End: ^mem.Addr(0)})
	c.tab.stopHits()
	err := c.reclaimUnlocking()
	for c.calls > 0 || len(c.endedWatches) > 0 {
		if c.calls > 0 {
			c.waitUnlocking(&c.callEnded, nil)
		}
		err = errors.Join(err, c.reclaimUnlocking())
	}
	for try := 0; try < closeTries && len(c.unreleased) > 0; try++ {
		_, err = c.retryUnlocking()
	}
	if c.opts.Group != nil {
		c.opts.Group.leave(c)
	}
	if c.isUnreachable() {
		c.stats.Hits += c.tab.hits()
		c.unmap.Stop()
		c.grants = nil
		err = errors.Join(err, c.tab.unmap())
		for _, f := range append(c.idleLocals, c.shared) {
			f.hdr = c.tab.header
		}
	}
	return err
}

// isUnreachable reports whether nobody can look at the table of a closed cache any more: all
// Locals were given back, no reference is left, none is on its way, and nobody used the cache without
// a Local.
func (c *Cache) isUnreachable() bool {
	const shared = 1 // Cache.shared is never given back
	none := c.calls == 0 && c.unpublished.Regions == 0 && atomic.LoadUint32(&c.tab.retired) == 0
	return none && len(c.idleLocals) == len(c.tab.locals)-shared &&
		(c.opts.Confined || !c.shared.used(c.tab.next))
}
