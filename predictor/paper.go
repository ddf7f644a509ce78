package predictor

import (
	"math"

	"pinwheel/mem"
)

// Paper is the predictor of Li et al., CF'11, sections 3.1 and 4.2: a use has a
// signature, hashed from its call site (the stack frames), its region, and the
// type and the region of each of the calls before it that are in the context window
// ("communication type and memory address"; a region of the cache has one address
// for all that a program sends from it); each signature has a period, the shortest
// time seen between two of its uses; and a region is due at the earliest deadline,
// last use plus period, over all its signatures.
//
// The paper does not say what happens when a deadline passes without its use, because the program took another path.
// NewPaper takes section 3.2, "finds the nearest future registration time", for it: such a deadline counts no longer.
// NewPaperStrict takes inequality 1 as it is printed, t_c + t_p <= t_d with t_d the "earliest registration deadline
// associated with the region": such a deadline keeps the region registered until its signature comes again.
type Paper struct {
	period
	window []call // the calls before, the next one to be replaced at from
	from   int
}

// call is what the context window keeps of a call (section 4.3).
type call struct {
	op     Op
	region mem.RegionID
}

// NewPaper returns an empty predictor for which only deadlines count that are still to come.
func NewPaper(o Options) *Paper {
	return &Paper{period: newPeriod(shortest), window: make([]call, 0, min(max(o.Window, 0), MaxWindow))}
}

// NewPaperStrict returns an empty predictor for which deadlines count that have passed, too.
func NewPaperStrict(o Options) *Paper {
	p := NewPaper(o)
	p.overdue = true
	return p
}

// Observe implements Predictor.
func (p *Paper) Observe(u Use) {
	p.observe(&u, p.signature(&u))
	c := call{u.Op, u.Region}
	switch {
	case len(p.window) < cap(p.window):
		p.window = append(p.window, c)
	case len(p.window) > 0:
		p.window[p.from] = c
		p.from = (p.from + 1) % len(p.window)
	}
}

func (p *Paper) signature(u *Use) signature {
	x := mix(0, uint64(u.Region))
	for _, f := range u.Frames {
		x = mix(x, f)
	}
	for i := range p.window {
		c := p.window[(p.from+i)%len(p.window)] // the oldest first: a after b is not b after a
		x = mix(mix(x, uint64(c.op)), uint64(c.region))
	}
	return signature(x)
}

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
	overdue bool // deadlines that have passed count, too
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

// Next implements Predictor: the earliest deadline that counts. The one that is expected is the earliest to come.
func (p *period) Next(id mem.RegionID, nowNs int64) (Prediction, bool) {
	earliest, coming := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, sig := range p.regions[id] {
		s := p.sites[sig]
		if s.periodNs == 0 {
			continue
		}
		deadlineNs := s.lastNs + s.periodNs
		earliest = min(earliest, deadlineNs)
		if deadlineNs > nowNs {
			coming = min(coming, deadlineNs)
		}
	}
	switch {
	case !p.overdue:
		earliest = coming
	case coming == math.MaxInt64:
		coming = earliest
	}
	if earliest == math.MaxInt64 {
		return Prediction{}, false
	}
	return Prediction{NextNs: earliest, ExpectedNs: coming}, true
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
