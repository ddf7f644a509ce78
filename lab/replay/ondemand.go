package replay

import (
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/schedule"
)

// onDemand serves the uses of a rank whose processors are all busy, as schedule.Demand says: at the sites that are not
// kept, memory is registered for each use.
type onDemand struct {
	rule    *schedule.Demand
	path    *cachedPath
	sites   map[siteOf]int
	counts  []schedule.DemandCounts
	last    map[mem.Addr]*lastUse // of each buffer, by its start
	buffers []*lastUse            // all of last, in the order of their first uses
	spentNs int64
}

// siteOf is a call site of a program.
type siteOf struct {
	stack uint32
	op    uint8
}

// lastUse is the last use of a buffer.
type lastUse struct {
	site  int
	endNs int64
	id    mem.RegionID // 0: it was deregistered
}

func newOnDemand(cost float64, path *cachedPath, t int64) *onDemand {
	return &onDemand{
		rule: schedule.NewDemand(cost, t), path: path,
		sites: map[siteOf]int{}, last: map[mem.Addr]*lastUse{},
	}
}

func (o *onDemand) site(n *need) int {
	key := siteOf{n.stack, uint8(n.op)}
	i, known := o.sites[key]
	if !known {
		i = len(o.counts)
		o.sites[key] = i
		o.counts = append(o.counts, schedule.DemandCounts{})
	}
	return i
}

// acquire makes memory registered for a use.
func (o *onDemand) acquire(t int64, n *need) (regcache.Ref, error) {
	if ref, ok := o.path.local.IsRegistered(n.rng, Access); ok {
		return ref, nil
	}
	acquire := o.path.local.Register
	if o.rule.Kept(o.site(n)) || o.spentNs >= o.rule.LimitNs() {
		acquire = o.path.local.Acquire
	}
	ref, _, err := acquire(n.rng, Access)
	if err != nil {
		return ref, err
	}
	if last := o.last[n.rng.Start]; last != nil {
		c := &o.counts[last.site]
		c.SpentNs += o.path.provider.spentNs
		c.SavedByteNs += float64(n.rng.PageAligned().Len()) * float64(t-last.endNs)
		o.spend(o.path.provider.spentNs)
	}
	return ref, nil
}

// released notes that a use of a region has ended, or of memory that is deregistered if that is 0.
func (o *onDemand) released(t int64, n *need, id mem.RegionID) {
	site := o.site(n)
	last := o.last[n.rng.Start]
	if last == nil {
		last = &lastUse{}
		o.last[n.rng.Start] = last
		o.buffers = append(o.buffers, last)
	}
	*last = lastUse{site, t, id}
	o.counts[site].Uses++
	if id == 0 {
		o.freed(site, o.path.provider.spentNs)
	}
}

func (o *onDemand) spend(ns int64) {
	o.spentNs += ns
	o.path.stats.DemandNs += ns
}

func (o *onDemand) freed(site int, tookNs int64) {
	o.counts[site].Freed++
	o.counts[site].SpentNs += tookNs
	o.spend(tookNs)
}

// look decides anew, and deregisters what should not have stayed registered. It returns what processor time that took.
func (o *onDemand) look(t int64) (tookNs int64) {
	tookNs = schedule.WakeupNs
	o.spend(tookNs)
	o.rule.Look(t, o.spentNs, o.counts)
	if o.spentNs >= o.rule.LimitNs() {
		return tookNs
	}
	for _, last := range o.buffers {
		if last.id == 0 || o.rule.Kept(last.site) {
			continue
		}
		spentNs, err := o.path.helperDeregister(t+tookNs, last.id)
		if err == nil && o.path.provider.deregistered > 0 {
			o.freed(last.site, spentNs)
			tookNs += spentNs
		}
		last.id = 0
	}
	return tookNs
}
