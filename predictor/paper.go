package predictor

import (
	"math"

	"pinwheel/mem"
)

// Paper is the predictor of Li et al., CF'11, sections 3.1 and 4.2: a use has a
// signature, hashed from its call site, its region and the uses before it;
// each signature has a period, the shortest time seen between two of its
// uses; and a region is due at the earliest deadline, last use plus period,
// over all its signatures.
type Paper struct {
	period
	history history
}

// NewPaper returns an empty predictor.
func NewPaper(o Options) *Paper {
	return &Paper{
		period:  newPeriod(shortest),
		history: history{window: min(max(o.Window, 0), MaxWindow)},
	}
}

// Observe implements Predictor.
func (p *Paper) Observe(u Use) { p.observe(&u, p.history.signatures(&u)[levelWindow]) }

// Last predicts that the last interval between two uses of a region repeats,
// whatever call sites they came from. It is the simplest predictor.
type Last struct{ period }

// NewLast returns an empty predictor.
func NewLast() *Last { return &Last{newPeriod(latest)} }

// Observe implements Predictor.
func (p *Last) Observe(u Use) { p.observe(&u, signature(u.Region)) }

// period predicts from the time between uses of one signature. The paper calls
// this table the call site hash table.
type period struct {
	update  func(periodNs, seenNs int64) int64
	regions map[mem.RegionID][]signature
	sites   map[signature]*site
	changed [1]mem.RegionID
}

// maxSites bounds the table of a program whose call sites never repeat: a
// region keeps its latest signatures.
const maxSites = 1024

// site is one entry of the table.
type site struct {
	lastNs   int64 // when its last use began
	periodNs int64 // 0: seen once
}

func newPeriod(update func(periodNs, seenNs int64) int64) period {
	return period{update: update, regions: make(map[mem.RegionID][]signature), sites: make(map[signature]*site)}
}

func shortest(periodNs, seenNs int64) int64 {
	if periodNs == 0 {
		return seenNs
	}
	return min(periodNs, seenNs)
}

func latest(_, seenNs int64) int64 { return seenNs }

func (p *period) observe(u *Use, sig signature) {
	p.changed[0] = u.Region
	s := p.sites[sig]
	if s == nil {
		p.sites[sig] = &site{lastNs: u.StartNs}
		sigs := p.regions[u.Region]
		if len(sigs) == maxSites {
			delete(p.sites, sigs[0])
			sigs = sigs[1:]
		}
		p.regions[u.Region] = append(sigs, sig)
		return
	}
	s.periodNs = p.update(s.periodNs, max(1, u.StartNs-s.lastNs))
	s.lastNs = u.StartNs
}

// Next implements Predictor: the earliest deadline that is still to come.
func (p *period) Next(id mem.RegionID, nowNs int64) (Prediction, bool) {
	next := int64(math.MaxInt64)
	for _, sig := range p.regions[id] {
		if s := p.sites[sig]; s.periodNs > 0 && s.lastNs+s.periodNs > nowNs {
			next = min(next, s.lastNs+s.periodNs)
		}
	}
	if next == math.MaxInt64 {
		return Prediction{}, false
	}
	return Prediction{NextNs: next, ExpectedNs: next}, true
}

// Changed implements Predictor.
func (p *period) Changed() []mem.RegionID { return p.changed[:] }

// Forget implements Predictor.
func (p *period) Forget(id mem.RegionID) {
	for _, sig := range p.regions[id] {
		delete(p.sites, sig)
	}
	delete(p.regions, id)
}
