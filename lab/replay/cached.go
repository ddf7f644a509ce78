package replay

import (
	"errors"

	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/regcache"
	"pinwheel/schedule"
	"pinwheel/verbs"
)

// Access is what transports register with, so that one registration serves
// every use of a buffer.
const Access = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead

// cachedPath is the communication path of every policy that keeps
// registrations in the registration cache.
type cachedPath struct {
	cache    *regcache.Cache
	local    *regcache.Local
	provider *virtualProvider
	bounce   bouncePath // for what finds no room under the budget
	stats    *Counts
	lookupNs int64
	// demand makes a registration for every use, past the cache: policy on-demand.
	demand    bool
	full      *onDemand // on a processor without room for a helper; else nil
	watchNs   int64     // as long after openedNs, so too; Options.WatchNs
	openedNs  int64     // the first use
	sites     callSites
	firstUses FirstUses
	helper    *virtualHelper        // nil for a policy without one
	unused    map[mem.RegionID]bool // registered by the helper, not used since
	log       useLog                // to note every use in, of policy leave-pinned; else nil
}

func (c *cachedPath) acquire(t int64, n *need, u *bufferUse) (stallNs int64, err error) {
	c.provider.begin(t)
	ref, err := c.registered(t, n)
	if errors.Is(err, verbs.ErrPinnedMemory) {
		c.stats.Unregistered++
		c.stats.StallNs += c.provider.spentNs // spent on making room, in vain
		copyNs, err := c.bounce.acquire(t, n, u)
		return c.provider.spentNs + copyNs, err
	}
	if err != nil {
		return 0, err
	}
	first := c.firstUses.IsFirst(n.rng.PageAligned())
	if c.provider.registered > 0 {
		if first {
			c.stats.FirstRegs++
		} else {
			c.stats.LateRegs++
			c.stats.AgainNs += c.againNs()
		}
	}
	readyNs, waited := t+c.provider.spentNs, false
	if r := c.provider.readyNs[ref.Region().Handle]; r > readyNs { // the helper is at it
		c.stats.WaitNs += r - readyNs
		readyNs, waited = r, true
		c.stats.LateWaits++
	}
	if c.helper != nil && c.full == nil && ref.ID() != 0 && (c.provider.registered > 0 || readyNs > t) {
		c.helper.missed(ref.ID(), t, readyNs)
	}
	delete(c.unused, ref.ID())
	stallNs = readyNs - t + c.lookupNs
	c.stats.Needs++
	c.stats.StallNs += stallNs
	c.provider.journal.belongs(ref.Region().Handle, ref.ID(), false)
	*u = bufferUse{need: *n, needNs: t, ref: ref, missed: c.provider.registered > 0, waited: waited}
	return stallNs, nil
}

// againNs is what a cache would have spared the use that has just registered its memory again, unless onDemand counts it.
func (c *cachedPath) againNs() int64 {
	if c.full != nil {
		return 0
	}
	return c.provider.spentNs
}

// registered makes memory registered for a use at t.
func (c *cachedPath) registered(t int64, n *need) (ref regcache.Ref, err error) {
	switch {
	case c.full != nil:
		return c.full.acquire(t, n)
	case c.demand || c.isEarly(t):
		ref, _, err = c.local.Register(n.rng, Access)
	default:
		ref, _, err = c.local.Acquire(n.rng, Access)
	}
	return ref, err
}

// isEarly reports whether a use at t comes before changes of mappings are noticed. What is registered then is not kept, and
// is a first use again afterwards.
func (c *cachedPath) isEarly(t int64) bool {
	if c.watchNs == 0 {
		return false
	}
	if c.openedNs == never {
		c.openedNs = t
	}
	if t < c.openedNs+c.watchNs {
		return true
	}
	c.watchNs, c.firstUses = 0, FirstUses{}
	return false
}

func (c *cachedPath) release(t int64, u *bufferUse) (stallNs int64, err error) {
	if !u.ref.Valid() {
		c.provider.journal.used(RegionUse{0, u.need.rng.PageAligned(), u.needNs, t, false, false})
		return c.bounce.release(t, u)
	}
	id, pages := u.ref.ID(), u.ref.Region().Range.Pages()
	c.provider.begin(t)
	c.local.Release(u.ref) // deregisters what was for this use alone
	c.stats.StallNs += c.provider.spentNs
	c.provider.journal.used(RegionUse{id, u.need.rng.PageAligned(), u.needNs, t, u.missed, u.waited})
	if c.full != nil {
		c.full.released(t, &u.need, id)
		return c.provider.spentNs, nil
	}
	if c.helper == nil && c.log == nil || id == 0 {
		return c.provider.spentNs, nil
	}
	use := predictor.Use{
		Region: id, Range: u.need.rng, StartNs: u.needNs, EndNs: t,
		Op: predictor.Op(u.need.op), Frames: *c.sites.frames(u.need.stack),
	}
	if c.helper != nil {
		c.helper.push(t, &schedule.Event{Pages: pages, Use: use})
	} else {
		use.Bytes, use.LeadNs = int64(pages*mem.PageSize), c.provider.costs.Register.Ns(pages)
		c.log.add(use)
	}
	return c.provider.spentNs, nil
}

func (c *cachedPath) transferring(*bufferUse, int64, int64) {}

// unmapped does what the next lookup after a change does. What is in use stays registered until it is released.
func (c *cachedPath) unmapped(t int64, r mem.Range) (stallNs int64, err error) {
	c.provider.begin(t)
	err = c.cache.Invalidate(r)
	c.firstUses.Forget(r.PageAligned())
	c.stats.StallNs += c.provider.spentNs
	return c.provider.spentNs, err
}

// helperRegister lets the helper register a region at t; spentNs is how long it takes.
func (c *cachedPath) helperRegister(t int64, id mem.RegionID) (spentNs int64, err error) {
	c.provider.begin(t)
	if err := c.cache.Register(id); err != nil {
		return c.provider.spentNs, err
	}
	if c.provider.registered > 0 {
		c.stats.HelperRegs++
		c.unused[id] = true
		c.provider.journal.belongs(c.provider.handle, id, true)
	}
	return c.provider.spentNs, nil
}

// helperDeregister lets the helper deregister a region at t.
func (c *cachedPath) helperDeregister(t int64, id mem.RegionID) (spentNs int64, err error) {
	c.provider.begin(t)
	if err := c.cache.Deregister(id); err != nil {
		return c.provider.spentNs, err
	}
	if c.provider.deregistered > 0 {
		c.stats.HelperDeregs++
		if c.unused[id] {
			c.stats.WastedRegs++
			delete(c.unused, id)
		}
	}
	return c.provider.spentNs, nil
}

// callSites converts call sites of a trace to the form of the predictor, each once.
type callSites struct {
	stream Stream
	sites  []*[predictor.MaxFrames]uint64
}

func (s *callSites) frames(stack uint32) *[predictor.MaxFrames]uint64 {
	for uint32(len(s.sites)) <= stack {
		s.sites = append(s.sites, nil)
	}
	if s.sites[stack] == nil {
		var f [predictor.MaxFrames]uint64
		copy(f[:], s.stream.Frames(stack))
		s.sites[stack] = &f
	}
	return s.sites[stack]
}
