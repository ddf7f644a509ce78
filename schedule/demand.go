package schedule

import (
	"cmp"
	"math"
	"slices"
)

// Demand decides what happens to memory after its use where no core is idle for the helper. There a registration ahead
// takes as much of the rank's time as one by the rank itself, and needs a helper that looks, predicts and wakes. So
// uses are served on demand: the thread that needs memory registers it, and deregisters it after the use. The cost of
// that, compared with a cache, is bounded by a share of the rank's time. If the bound does not allow all call sites,
// the sites that save most for their cost are served: bytes times the time for which they are not registered. Buffers
// of the others stay registered.
//
// Demand is pure: it reads no clock, and the same looks give the same decisions. It is not safe for concurrent use.
type Demand struct {
	cost     float64
	sites    []demandSite
	order    []int // scratch
	lastNs   int64
	spentNs  int64
	pauseNs  int64
	limitNs  float64 // what may have been spent until the next look
	bursting bool    // the site at the limit is served on demand, for a while
}

// DemandCounts are what a call site has counted since the process began.
type DemandCounts struct {
	Uses  int64 // all
	Freed int64 // of them those whose memory was deregistered after the use, at once or later
	// SpentNs is what a cache would have spared: those deregistrations, and registering the memory again.
	SpentNs int64
	// SavedByteNs is the memory of those uses, in bytes, times the time until it was needed again.
	SavedByteNs float64
}

// demandSite is what is known of a call site. Old counts fade.
type demandSite struct {
	known DemandCounts
	kept  bool
	paid  bool // the share pays for it, so that it is served on demand all the time

	allNs, uses               float64
	freedNs                   float64 // served on demand
	freed, spentNs, savedByte float64
}

const (
	// demandFadeNs is how fast counts fade: they count for 1/e after that.
	demandFadeNs = 10_000_000_000 // 10 s
	// demandAdvanceNs is the time whose share may be spent before it was earned. With half of it, sites that the budget
	// pays for are kept for a while at the start.
	demandAdvanceNs = 2_000_000_000 // 2 s
	// mostSavedNs is the time whose share may be saved up.
	mostSavedNs = 20_000_000_000 // 20 s
	// burstNs is the time whose share is left over when the site at the limit is no longer served on demand.
	burstNs = 1_000_000_000 // 1 s
	// stays is how much better another site must be to take the place of one that is served on demand: the memory of
	// both is registered once more for that.
	stays = 1.25
	// leastLookNs and mostLookNs bound the time between two looks: one costs some 30 us.
	leastLookNs = 100_000_000   // 100 ms
	mostLookNs  = 1_000_000_000 // 1 s
)

// NewDemand returns a Demand that begins at nowNs and lets a rank spend at most the share cost of its time, from 0 to 1.
func NewDemand(cost float64, nowNs int64) *Demand {
	return &Demand{cost: cost, lastNs: nowNs, limitNs: cost * demandAdvanceNs, bursting: true, pauseNs: leastLookNs}
}

// Kept reports whether memory stays registered after its use at a site. Those of which nothing is known are served on
// demand: that tells the cost.
func (d *Demand) Kept(site int) bool { return site < len(d.sites) && d.sites[site].kept }

// LimitNs is what may be spent from the beginning until the next look. Whoever serves uses on demand stops there.
func (d *Demand) LimitNs() int64 { return int64(d.limitNs) }

// PauseNs is how long to wait until the next look: half as long as what is left lasts at the pace of the last pause. It
// is short if memory stayed registered at sites that are not kept, since the cache had it: a look ends that.
func (d *Demand) PauseNs() int64 { return d.pauseNs }

// Look takes in what the call sites have counted so far, always in the same order, and what was spent in all: by
// their uses, and by the helper. It decides again which are kept.
func (d *Demand) Look(nowNs, spentNs int64, counts []DemandCounts) {
	tookNs := float64(max(0, nowNs-d.lastNs))
	d.lastNs = max(nowNs, d.lastNs)
	d.limitNs = min(d.limitNs+d.cost*tookNs, float64(spentNs)+d.cost*mostSavedNs)
	for len(d.sites) < len(counts) {
		d.sites = append(d.sites, demandSite{})
	}
	fade := math.Exp(-tookNs / demandFadeNs)
	stale := false
	for i := range counts {
		was := d.sites[i].known
		stale = stale || !d.sites[i].kept && counts[i].Uses-was.Uses > counts[i].Freed-was.Freed
		d.sites[i].learn(&counts[i], tookNs, fade)
	}
	leftNs := d.limitNs - float64(spentNs)
	d.pauseNs = int64(max(leastLookNs, min(leftNs/2*tookNs/float64(max(spentNs-d.spentNs, 1)), mostLookNs)))
	if stale {
		d.pauseNs = leastLookNs
	}
	d.spentNs = spentNs
	switch {
	case leftNs >= d.cost*demandAdvanceNs:
		d.bursting = true
	case leftNs < d.cost*burstNs:
		d.bursting = false
	}
	d.choose()
}

// learn takes in what a site has counted in tookNs.
func (s *demandSite) learn(c *DemandCounts, tookNs, fade float64) {
	was := s.known
	s.known = *c
	s.allNs, s.uses = s.allNs*fade+tookNs, s.uses*fade+float64(c.Uses-was.Uses)
	if s.kept && c.Freed == was.Freed && c.SpentNs == was.SpentNs {
		return // what was learned on demand stays
	}
	if !s.kept {
		s.freedNs, s.freed = s.freedNs*fade+tookNs, s.freed*fade
		s.spentNs, s.savedByte = s.spentNs*fade, s.savedByte*fade
	}
	s.freed += float64(c.Freed - was.Freed)
	s.spentNs += float64(c.SpentNs - was.SpentNs)
	s.savedByte += c.SavedByteNs - was.SavedByteNs
}

// costShare is the share of the rank's time that serving the site on demand takes.
func (s *demandSite) costShare() float64 {
	if s.freed == 0 || s.allNs == 0 {
		return 0
	}
	return s.spentNs / s.freed * s.uses / s.allNs
}

// worth is how many bytes that saves on average for each nanosecond a nanosecond.
func (s *demandSite) worth() float64 {
	cost := s.costShare()
	if cost == 0 {
		return math.Inf(1)
	}
	worth := s.savedByte / max(s.freedNs, 1) / cost
	if s.paid {
		worth *= stays
	}
	return worth
}

// choose serves the best sites on demand, as far as the share of the rank's time pays for them.
func (d *Demand) choose() {
	d.order = d.order[:0]
	for i := range d.sites {
		d.order = append(d.order, i)
	}
	slices.SortStableFunc(d.order, func(a, b int) int { return -cmp.Compare(d.sites[a].worth(), d.sites[b].worth()) })
	share, full := 0.0, false
	for _, i := range d.order {
		s := &d.sites[i]
		share += s.costShare()
		s.paid = !full && share <= d.cost
		s.kept = !s.paid && (full || !d.bursting)
		full = !s.paid
	}
}
