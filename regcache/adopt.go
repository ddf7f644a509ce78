package regcache

import (
	"errors"
	"sync/atomic"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// C threads register first uses by themselves (offer.h). This file lends them room and slots, and adopts
// what they have registered.

// OfferWatcher is a Watcher that C code can have watch a range by itself: the counts of Interest, by granules
// of 2 MiB modulo 65,536, say how many want to hear of changes. Interest is nil if it can't.
type OfferWatcher interface {
	Watcher
	Interest() *uint32
	// Uninterest takes back one count in each granule of r.
	Uninterest(r mem.Range)
	// ChangedSince reports whether r has changed since the word had this value, as far as r was watched.
	ChangedSince(generation uint64, r mem.Range) bool
}

// Adopted is a registration that a C thread has made.
type Adopted struct {
	Range   mem.Range
	Outcome Outcome            // First or Late
	ID      mem.RegionID       // zero if another region stands for the range by now
	Note    [OfferNotes]uint64 // from the thread
}

// lentRoom is what C threads may register at a time where there are no limits: in effect, everything. Below
// a limit only the writer can make room, so then nothing is lent.
const lentRoom = offerCount<<roomBits | 1<<(roomBits-1)

// startOffers prepares offers, if the options and the watcher allow for them.
func (c *Cache) startOffers() {
	w, ok := c.opts.Watcher.(OfferWatcher)
	if !ok || c.opts.OnAdopt == nil || w.Interest() == nil {
		return
	}
	c.offers, c.offerWatcher = c.tab.offers(), w
	c.offers.watches = w.Interest()
	for i := range c.offers.offer {
		c.renewOffer(&c.offers.offer[i])
	}
	c.lendRoom()
}

// renewOffer offers a slot, if there is one.
func (c *Cache) renewOffer(f *offer) {
	slot, ok := c.tab.allocate()
	if !ok {
		atomic.StoreUint32(&f.state, offerNone)
		return
	}
	c.lastID++
	c.tab.offerSlot(f, slot, c.lastID)
}

// lendRoom lends, once nothing is limited and all is adopted that was registered before something was.
func (c *Cache) lendRoom() {
	if c.offers != nil && !c.closed && !c.lends && c.owed.Regions == 0 && c.isUnlimited() {
		c.lends = true
		c.offers.lend(lentRoom)
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

// takeRoomBack ends lending. What C threads have taken counts as registered from now on.
func (c *Cache) takeRoomBack() {
	if !c.lends {
		return
	}
	c.lends = false
	c.owed = usageOf(lentRoom - c.offers.takeBack())
	c.account(c.owed)
}

// reviewRoom is reviewRoomUnlocking for the group.
func (c *Cache) reviewRoom() {
	c.mu.Lock()
	defer c.unlock()
	c.reviewRoomUnlocking()
}

// reviewRoomUnlocking lends, or ends lending, after a limit has changed.
func (c *Cache) reviewRoomUnlocking() {
	if !c.isUnlimited() {
		c.takeRoomBack()
	}
	c.adoptUnlocking()
	c.lendRoom()
}

// account counts registrations that C threads have made, without regard to limits.
func (c *Cache) account(u Usage) {
	c.pinned.Bytes += u.Bytes
	c.pinned.Regions += u.Regions
	c.stats.PeakPinnedBytes = max(c.stats.PeakPinnedBytes, c.pinned.Bytes)
	if c.opts.Group != nil {
		c.opts.Group.adopt(u)
	}
}

// settleRoom accounts for the registration of an offer that has come back, if it was made. It gives the room
// back that it took.
func (c *Cache) settleRoom(r mem.Range, made bool) {
	room := roomFor(r.Len())
	switch {
	case c.owed.Regions > 0: // which includes this one: lending has ended since
		c.owed.Bytes -= int64(r.Len())
		c.owed.Regions--
		if !made {
			c.unreserve(r)
		}
		c.lendRoom()
	default:
		c.offers.lend(room)
		if made {
			c.account(usageOf(room))
		}
	}
}

// Adopt takes over what C threads have registered by themselves, so that others can hit it. Every call that
// could miss such a region does so, too.
func (c *Cache) Adopt() {
	c.mu.Lock()
	defer c.unlock()
	c.adoptUnlocking()
}

// adoptUnlocking takes over what C threads have registered. Whoever looks for regions that must not be
// overlooked calls it first; mostly it reads one word.
func (c *Cache) adoptUnlocking() {
	if c.offers == nil {
		return
	}
	for {
		posted := atomic.LoadUint64(&c.offers.posted)
		if posted == c.adopted {
			return
		}
		for i := range c.offers.offer {
			c.adoptOfferUnlocking(&c.offers.offer[i])
		}
		_ = c.reclaimUnlocking() // failures are counted in Stats.Leaked
		c.adopted = posted       // what came later counts for the next time
	}
}

// adoptOfferUnlocking takes over one offer, if it has come back, and renews it.
func (c *Cache) adoptOfferUnlocking(f *offer) {
	state := atomic.LoadUint32(&f.state)
	if state != offerMade && state != offerFailed {
		return
	}
	rng := mem.Range{Start: mem.Addr(loadWord(&f.low)), End: mem.Addr(loadWord(&f.high))}
	access := verbs.Access(c.tab.desc(f.slot).access)
	generation, a := f.generation, Adopted{Range: rng, Outcome: c.firstOrLate(rng, access), Note: f.note}
	c.settleRoom(rng, state == offerMade)
	if state == offerFailed {
		c.offerWatcher.Uninterest(rng)
		c.tab.offerSlot(f, f.slot, mem.RegionID(c.tab.desc(f.slot).id))
		return
	}
	g := &region{rng: rng, access: access, slot: f.slot, state: registering, heapIndex: -1}
	c.setSlot(g.slot, g)
	var err error
	switch refused := c.refuses(rng, access); {
	case refused != nil && refused.err == nil: // that it can be registered, the thread has shown
		err = errUncacheable
	case !c.makeKnown(g):
		err = errKnown
	}
	a.ID = g.id
	c.renewOffer(f) // not before: C code looks there first, and then for known regions
	c.adoptRegionUnlocking(g, generation, a, err)
}

// adoptRegionUnlocking makes a registration that a C thread has made one that others can hit. If that can't be,
// with err or for another reason, the registration lives until its last reference is dropped.
func (c *Cache) adoptRegionUnlocking(g *region, generation uint64, a Adopted, err error) {
	result := errUnended
	defer func() {
		c.offerWatcher.Uninterest(g.rng)
		c.endAdoption(g, result)
	}()
	storeWord(&c.tab.epoch, c.tab.epoch+1)
	if a.Outcome == First {
		c.stats.First++
	} else {
		c.stats.Late++
	}
	var refused error
	if err == nil {
		if err = c.watchUnlocking(g, c.offerWatcher); err == nil && !g.verify &&
			!c.offerWatcher.ChangedSince(generation, g.rng) { // what was freed since is nobody's: no need to ask
			refused = c.acceptUnlocking(g, c.offerWatcher)
		}
	}
	result = errors.Join(err, c.withoutLock(func() error { c.opts.OnAdopt(a); return nil }), c.drainUnlocking())
	switch {
	case result != nil:
	case g.verify || c.offerWatcher.ChangedSince(generation, g.rng):
		result = errMoved // or nobody can tell
	case refused != nil:
		result = errors.Join(errUncacheable, refused)
	}
}

// errKnown says that a region which others know stands for a range that was registered as a first use.
var errKnown = errors.New("range is known under another region")

// makeKnown enters a region under the ID that was offered, as closed, unless another stands for its range
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

// endAdoption ends the adoption of a region, which is registered whatever happened.
func (c *Cache) endAdoption(g *region, err error) {
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
		c.forgotten.push(mem.RegionID(c.tab.desc(g.slot).id)) // the helper may have heard of it
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
