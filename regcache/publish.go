package regcache

import (
	"errors"
	"sync/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// C threads register first and late uses by themselves (grant.h). This file gives them credit and slots, and publishes
// what they have registered.

// GrantWatcher is a Watcher that C code can have watch a range by itself: the counts of Interest, by granules
// of 2 MiB modulo 65,536, say how many want to hear of changes. Interest is nil if it can't.
type GrantWatcher interface {
	Watcher
	Interest() *uint32
	// Uninterest takes back one count in each granule of r.
	Uninterest(r mem.Range)
	// Records is the first word of the log of what each step of the word changed, as struct pwt_change of table.h has it,
	// outside the Go heap for as long as the word. nil: only ChangedSince and Drain can tell.
	Records() *uint64
	// ChangedSince reports whether r has changed since the word had this value, as far as r was watched.
	ChangedSince(generation uint64, r mem.Range) bool
}

// Published is a registration that a C thread has made.
type Published struct {
	Range   mem.Range
	Outcome Outcome            // First or Late
	ID      mem.RegionID       // zero if another region stands for the range by now
	Note    [GrantNotes]uint64 // from the thread
}

// fullCredit is what C threads may register at a time where there are no limits: in effect, everything. Below
// a limit only the writer can make room, so then they get none.
const fullCredit = grantCount<<creditBits | 1<<(creditBits-1)

// startGrants prepares grants, if the options and the watcher allow for them.
func (c *Cache) startGrants() {
	w, ok := c.opts.Watcher.(GrantWatcher)
	if !ok || c.opts.OnPublish == nil || w.Interest() == nil {
		return
	}
	c.grants, c.grantWatcher = c.tab.grants(), w
	c.grants.watches = w.Interest()
	c.tab.setLog(w.Records())
	for i := range c.grants.grant {
		c.renewGrant(i)
	}
	c.giveCredit()
}

// renewGrant grants another slot, if there is one.
func (c *Cache) renewGrant(i int) {
	slot, ok := c.tab.allocate()
	if !ok {
		atomic.StoreUint32(&c.grants.grant[i].state, grantNone)
		return
	}
	c.grantSlot(i, slot)
}

// grantSlot grants a slot, under the ID that a new region will have.
func (c *Cache) grantSlot(i int, slot uint32) {
	c.lastID++
	c.grantedIDs[i] = c.lastID
	c.tab.grantSlot(&c.grants.grant[i], slot, c.lastID)
}

// giveCredit gives it, once nothing is limited and all is published that was registered before something was.
func (c *Cache) giveCredit() {
	if c.grants != nil && !c.closed && !c.hasCredit && c.unpublished.Regions == 0 && c.isUnlimited() {
		c.hasCredit = true
		c.grants.give(fullCredit)
	}
}

func (c *Cache) isUnlimited() bool {
	none := Limits{mem.Unlimited, mem.Unlimited}
	if c.opts.Group != nil {
		if limits, _ := c.opts.Group.state(); limits != none {
			return false
		}
	}
	return c.limits == none
}

// withdrawCredit takes it back. What C threads have taken counts as registered from now on.
func (c *Cache) withdrawCredit() {
	if !c.hasCredit {
		return
	}
	c.hasCredit = false
	c.unpublished = usageOf(fullCredit - c.grants.withdraw())
	c.account(c.unpublished)
}

// reviewCredit is reviewCreditUnlocking for the group.
func (c *Cache) reviewCredit() {
	c.mu.Lock()
	defer c.unlock()
	c.reviewCreditUnlocking()
}

// reviewCreditUnlocking gives credit, or withdraws it, after a limit has changed.
func (c *Cache) reviewCreditUnlocking() {
	if !c.isUnlimited() {
		c.withdrawCredit()
	}
	c.publishUnlocking()
	c.giveCredit()
}

// account counts registrations that C threads have made, without regard to limits.
func (c *Cache) account(u Usage) {
	c.pinned.Bytes += u.Bytes
	c.pinned.Regions += u.Regions
	c.stats.PeakPinnedBytes = max(c.stats.PeakPinnedBytes, c.pinned.Bytes)
	if c.opts.Group != nil {
		c.opts.Group.count(u)
	}
}

// settleCredit accounts for the registration of a grant that has come back, if it was made. It gives the credit
// back that it took.
func (c *Cache) settleCredit(r mem.Range, made bool) {
	credit := creditFor(r.Len())
	switch {
	case c.unpublished.Regions > 0: // which includes this one: the credit was withdrawn since
		c.unpublished.Bytes -= int64(r.Len())
		c.unpublished.Regions--
		if !made {
			c.unreserve(r)
		}
		c.giveCredit()
	default:
		c.grants.give(credit)
		if made {
			c.account(usageOf(credit))
		}
	}
}

// Publish takes over what C threads have registered by themselves, so that others can hit it. Every call that
// could miss such a region does so, too.
func (c *Cache) Publish() {
	c.mu.Lock()
	defer c.unlock()
	c.publishUnlocking()
}

// publishUnlocking takes over what C threads have registered. Whoever looks for regions that must not be
// overlooked calls it first; mostly it reads one word.
func (c *Cache) publishUnlocking() {
	if c.grants == nil {
		return
	}
	for {
		posted := atomic.LoadUint64(&c.grants.posted)
		if posted == c.published {
			return
		}
		_ = c.drainUnlocking() // what changed before them must not drop them; a failure comes again
		for i := range c.grants.grant {
			c.publishGrantUnlocking(i)
		}
		_ = c.reclaimUnlocking() // failures are counted in Stats.Leaked
		c.published = posted     // what came later counts for the next time
	}
}

// publishGrantUnlocking takes over one grant, if it has come back, and renews it.
func (c *Cache) publishGrantUnlocking(i int) {
	f := &c.grants.grant[i]
	state := atomic.LoadUint32(&f.state)
	if state != grantMade && state != grantFailed {
		return
	}
	rng := mem.Range{Start: mem.Addr(loadWord(&f.low)), End: mem.Addr(loadWord(&f.high))}
	access := verbs.Access(c.tab.desc(f.slot).access)
	generation, a := f.generation, Published{Range: rng, Outcome: c.firstOrLate(rng, access), Note: f.note}
	c.settleCredit(rng, state == grantMade)
	if state == grantFailed {
		c.grantWatcher.Uninterest(rng)
		c.grantSlot(i, f.slot)
		return
	}
	g, err := c.publishedRegion(i, rng, access)
	a.ID = g.id
	c.renewGrant(i) // not before: C code looks there first, and then for known regions
	c.publishRegionUnlocking(g, generation, a, err)
}

// publishedRegion returns the region that a C thread has registered with a grant: the known one that it has found, if
// that is still as it was, or a new one. The new one is not known if there is an error.
func (c *Cache) publishedRegion(i int, rng mem.Range, access verbs.Access) (*region, error) {
	slot := c.grants.grant[i].slot
	id := mem.RegionID(c.tab.desc(slot).id)
	if g := c.byID.get(id); g != nil && g.state == absent && g.rng == rng && g.access == access {
		c.moveTo(g, slot)
		return g, nil
	}
	g := &region{rng: rng, access: access, slot: slot, state: registering, heapIndex: -1}
	c.setSlot(slot, g)
	switch refused := c.refuses(rng, access); {
	case refused != nil && refused.err == nil: // that it can be registered, the thread has shown
		return g, errUncacheable
	case id != c.grantedIDs[i] || !c.makeKnown(g):
		return g, errKnown
	}
	return g, nil
}

// publishRegionUnlocking makes a registration that a C thread has made one that others can hit. If that can't be,
// with err or for another reason, the registration lives until its last reference is dropped.
func (c *Cache) publishRegionUnlocking(g *region, generation uint64, a Published, err error) {
	result := errUnended
	defer func() {
		c.grantWatcher.Uninterest(g.rng)
		c.endPublication(g, result)
	}()
	storeWord(&c.tab.epoch, c.tab.epoch+1)
	if a.Outcome == First {
		c.stats.First++
	} else {
		c.stats.Late++
	}
	var refused error
	if err == nil {
		if !g.watched {
			err = c.watchUnlocking(g, c.grantWatcher)
		}
		if err == nil && !g.verify &&
			!c.grantWatcher.ChangedSince(generation, g.rng) { // what was freed since is nobody's: no need to ask
			refused = c.acceptUnlocking(g, c.grantWatcher)
		}
	}
	result = errors.Join(err, c.withoutLock(func() error { c.opts.OnPublish(a); return nil }), c.drainUnlocking())
	switch {
	case result != nil:
	case g.verify || c.grantWatcher.ChangedSince(generation, g.rng):
		result = errMoved // or nobody can tell
	case errors.Is(refused, mem.ErrChanged):
		result = errMoved
	case refused != nil:
		result = errors.Join(errUncacheable, refused)
	}
}

// errKnown says that another region stands for a range by now, or that the range's own was registered or forgotten
// meanwhile.
var errKnown = errors.New("range is known under another region")

// makeKnown enters a region under the ID that was granted, as closed, unless another stands for its range
// by now.
func (c *Cache) makeKnown(g *region) bool {
	if c.closed || c.bestFit(g.rng, g.access) != nil || len(c.growable(g.rng, g.access)) > 0 ||
		c.opts.AnyCovering && c.covering(g.rng, g.access) != nil {
		return false
	}
	c.forgetForOneMore()
	g.id = mem.RegionID(c.tab.desc(g.slot).id)
	c.byID.add(g)
	c.tab.insert(g.slot, g.rng, packAccess(g.access))
	return true
}

// endPublication ends the publication of a region, which is registered whatever happened.
func (c *Cache) endPublication(g *region, err error) {
	wasDropped := c.tab.isRetired(g.slot) // its mapping changed meanwhile
	if g.known() || wasDropped {
		c.settle(g, registered)
	}
	switch {
	case wasDropped:
		c.unwatch(g)
		c.retired = append(c.retired, g)
		return
	case !g.known():
		if id := mem.RegionID(c.tab.desc(g.slot).id); c.byID.get(id) == nil {
			c.forgotten.push(id) // the helper may have heard of it
		}
		c.tab.retire(g.slot, true)
		c.settle(g, registered)
		c.retired = append(c.retired, g)
		c.stats.Uncached++
		return
	}
	c.lru.add(g, c.tab.epoch)
	c.everRegistered.add(g.rng, g.access)
	switch {
	case err == nil:
		g.wasRegistered = true
		c.forgive(g)
		c.open(g)
	case errors.Is(err, errMoved):
		_ = c.reshape(g, g.rng, g.access) // absent now, and known; without a slot it is forgotten
	case errors.Is(err, errUncacheable) && !errors.Is(err, ErrFault):
		c.refuse(g, nil)
		c.stats.Uncached++
	default:
		c.forget(g)
	}
}
