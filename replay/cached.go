package replay

import (
	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/trace"
)

// cachedPath is the communication path of every policy that uses the
// registration cache.
type cachedPath struct {
	cache  *standin
	meter  *meter
	stats  *counters
	hitNs  int64 // cost of a lookup
	demand bool  // policy on-demand: deregister after every use
	seen   coverage
	known  map[mem.RegionID]*regionInfo
	frames func(stack uint32) *[predictor.MaxFrames]uint64
	helper *virtualHelper // nil without one
	errors *predictionErrors
}

// regionInfo is what the replay remembers of a region for its accounts.
type regionInfo struct {
	lastNeedNs int64
	needed     bool // since the helper registered it, or ever
	byHelper   bool // the registration in force was the helper's
}

func (c *cachedPath) info(id mem.RegionID) *regionInfo {
	i := c.known[id]
	if i == nil {
		i = &regionInfo{lastNeedNs: unknown}
		c.known[id] = i
	}
	return i
}

func (c *cachedPath) acquire(t int64, n *need, h *hold) (stallNs int64, err error) {
	c.meter.begin(t)
	ref, err := c.cache.Acquire(n.rng)
	if err != nil {
		return 0, err
	}
	startNs := t
	if len(c.meter.registered) > 0 {
		for _, r := range c.meter.registered {
			// What the helper is just releasing must be gone before it can come again.
			startNs = max(startNs, c.helper.releasing(r))
		}
		if c.seen.covers(n.rng.PageAligned()) {
			c.stats.LateRegs++
		} else {
			c.stats.FirstRegs++
		}
	}
	c.seen.add(n.rng.PageAligned())
	readyNs := startNs + c.meter.spentNs
	if r := c.meter.readyNs[ref.by.reg.Handle]; r > readyNs {
		readyNs = r // the helper is just registering it
		c.stats.LateWaits++
	}
	info := c.info(ref.home.id)
	info.needed = true
	if c.errors != nil {
		c.errors.needed(ref.home.id, t, info.lastNeedNs)
	}
	info.lastNeedNs = t
	stallNs = readyNs - t + c.hitNs
	c.stats.Needs++
	c.stats.StallNs += stallNs
	*h = hold{need: *n, needNs: t, ref: ref, id: ref.home.id, pages: ref.by.rng.Pages()}
	return stallNs, nil
}

func (c *cachedPath) release(t int64, h *hold) (stallNs int64, err error) {
	c.cache.Release(h.ref)
	if c.demand {
		c.meter.begin(t)
		if err := c.cache.Deregister(h.id); err == nil {
			stallNs = c.meter.spentNs
			c.stats.StallNs += stallNs
		}
		return stallNs, nil
	}
	if c.helper != nil {
		c.helper.push(t, helper.Event{Pages: h.pages, Use: predictor.Use{
			Region: h.id, Range: h.need.rng, StartNs: h.needNs, EndNs: t,
			Op: predictor.Op(h.need.op), Frames: *c.frames(h.need.stack),
		}})
	}
	return 0, nil
}

func (c *cachedPath) transferring(*hold, int64, int64) {}

func (c *cachedPath) close(int64) error { return nil }

// frameTable converts call sites to the form of the predictor, each once.
type frameTable struct {
	stream *trace.RankReader
	sites  []*[predictor.MaxFrames]uint64
}

func (f *frameTable) at(stack uint32) *[predictor.MaxFrames]uint64 {
	for uint32(len(f.sites)) <= stack {
		f.sites = append(f.sites, nil)
	}
	if f.sites[stack] == nil {
		var s [predictor.MaxFrames]uint64
		copy(s[:], f.stream.Frames(stack))
		f.sites[stack] = &s
	}
	return f.sites[stack]
}
