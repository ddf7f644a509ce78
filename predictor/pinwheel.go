package predictor

import "pinwheel/mem"

// anchorMemory is how many of the latest uses a need is learned from. A need
// is announced best by what directly precedes it.
const anchorMemory = 8

// maxContexts bounds the memory of a program whose contexts never repeat:
// when this many were seen, those not seen again since half of them came are
// forgotten.
const maxContexts = 1 << 15

// Options are the settings of the predictors with a context window.
type Options struct {
	// Window is the number of preceding uses that belong to a context, 0 to
	// MaxWindow.
	Window int
}

// Pinwheel is the default predictor. It differs from Paper in what it
// predicts: not the period of a call site, but how long it is from any event
// to the region's next need at any site. Every event in whose context a
// region's need followed before anchors that region's prediction anew, so
// that the error of a prediction is a share of the last stretch before the
// need and not of the whole period. The time named is the least of the recent
// gaps less a margin that adapts to the program's jitter.
type Pinwheel struct {
	history history
	regions map[mem.RegionID]*need
	young   map[signature]*context
	old     map[signature]*context
	anchors [anchorMemory]anchor
	fresh   [anchorMemory]anchor // the latest uses at call sites that were new
	seq     uint64               // uses observed
	news    uint64               // of these at new call sites
	margins margins
	changed []mem.RegionID
}

// need is what is known of one region.
type need struct {
	id        mem.RegionID
	last      anchor // its last use
	uses      int
	all       gaps // between its uses, whatever the context
	evidence  evidence
	fromNs    int64 // anchor of the prediction
	gapNs     int64 // predicted from there; the least seen
	spreadNs  int64 // of the gaps seen
	predicted bool
	forgotten bool   // contexts may still hold it
	heardSeq  uint64 // the last event that spoke for it, plus 1
	p         Prediction
}

// anchor is a past use, from whose end gaps are measured.
type anchor struct {
	seq            uint64
	startNs, endNs int64
	contexts       [levels]*context
}

// context holds the needs that followed it.
type context struct {
	seen      int // how often it occurred
	followers []*follower
}

// follower is one region's gaps after one context.
type follower struct {
	region  *need
	gaps    gaps
	overlap int    // occurrences of the context that ended while the region was in use
	cold    bool   // the only gap led through code that ran for the first time
	seq     uint64 // when it followed last
}

// maxFollowers bounds what one event costs in a program of thousands of
// regions. A region that is no follower is still predicted from its own last use.
const maxFollowers = 64

// NewPinwheel returns an empty predictor.
func NewPinwheel(o Options) *Pinwheel {
	return &Pinwheel{
		history: history{window: min(max(o.Window, 0), MaxWindow)},
		regions: make(map[mem.RegionID]*need),
		young:   make(map[signature]*context),
		margins: newMargins(),
	}
}

// Observe implements Predictor. It costs O(anchorMemory) table lookups.
func (p *Pinwheel) Observe(u Use) {
	r := p.regions[u.Region]
	if r == nil {
		r = &need{id: u.Region}
		p.regions[u.Region] = r
	}
	if r.uses > 0 {
		p.learn(r, u.StartNs)
	}
	a := anchor{seq: p.seq, startNs: u.StartNs, endNs: u.EndNs}
	for level, sig := range p.history.next(&u) {
		c := p.context(sig)
		c.seen++
		a.contexts[level] = c
	}
	if a.contexts[levelFrame1].seen == 1 {
		p.fresh[p.news%anchorMemory] = a
		p.news++
	}
	p.anchors[p.seq%anchorMemory] = a
	p.seq++
	r.last = a
	r.uses++

	p.changed = append(p.changed[:0], u.Region)
	p.predictOwn(r)
	p.predictOthers(&a)
}

// learn takes in the need of r at nowNs: from its own last use, in every
// context of that, and from the latest events since.
func (p *Pinwheel) learn(r *need, nowNs int64) {
	gap := nowNs - r.last.endNs
	r.all.add(gap)
	if r.predicted && nowNs >= r.fromNs { // else it was made when r was in use already
		p.margins.observe(r.evidence, r.gapNs, nowNs-r.fromNs, nowNs)
	}
	freshNs := int64(-1) // start of the latest new call before this need
	for i := range min(p.news, anchorMemory) {
		if a := &p.fresh[i]; a.endNs <= nowNs {
			freshNs = max(freshNs, a.startNs)
		}
	}
	for _, c := range r.last.contexts {
		c.add(r, gap, freshNs >= r.last.endNs, p.seq)
	}
	for i := range min(p.seq, anchorMemory) {
		a := &p.anchors[i]
		if a.seq <= r.last.seq {
			continue
		}
		for _, c := range a.contexts[levelSite:] {
			if a.endNs > nowNs {
				c.overlapped(r)
			} else {
				c.add(r, nowNs-a.endNs, freshNs >= a.endNs, p.seq)
			}
		}
	}
}

// add records that r was needed gapNs after this context.
func (c *context) add(r *need, gapNs int64, cold bool, seq uint64) {
	f := c.follower(r)
	if f == nil {
		f = c.place()
		*f = follower{region: r}
	}
	f.gaps.add(gapNs)
	f.cold = cold && f.gaps.n == 1
	f.seq = seq
}

// overlapped records that r was already in use again when the context occurred:
// of two transfers of one exchange either may complete first, and the later one
// announces the next need of both.
func (c *context) overlapped(r *need) {
	if f := c.follower(r); f != nil {
		f.overlap++
	}
}

// place returns where a new follower goes: in place of a forgotten region, at
// the end, or in place of the one that has not followed for longest.
func (c *context) place() *follower {
	oldest := 0
	for i, f := range c.followers {
		if f.region.forgotten {
			return f
		}
		if f.seq < c.followers[oldest].seq {
			oldest = i
		}
	}
	if len(c.followers) == maxFollowers {
		return c.followers[oldest]
	}
	f := new(follower)
	c.followers = append(c.followers, f)
	return f
}

func (c *context) follower(r *need) *follower {
	for _, f := range c.followers {
		if f.region == r {
			return f
		}
	}
	return nil
}

// predictOwn predicts the next need of r from its use just now: from the most
// specific context that it followed before, else from all its gaps.
func (p *Pinwheel) predictOwn(r *need) {
	r.predicted = false
	for level := levels - 1; level >= 0; level-- {
		f := r.last.contexts[level].follower(r)
		if f == nil {
			continue
		}
		p.predict(r, &f.gaps, f.evidence(level), r.last.endNs)
		return
	}
	if r.all.n > 1 { // one gap in another context says nothing
		p.predict(r, &r.all, anySite, r.last.endNs)
	}
}

// predictOthers anchors anew the regions that followed the contexts of a, each
// by the most specific one that makes its prediction sharper.
func (p *Pinwheel) predictOthers(a *anchor) {
	for level := levelWindow; level >= levelSite; level-- {
		c := a.contexts[level]
		for _, f := range c.followers {
			if f.region.heardSeq != p.seq && p.reanchor(f, c, level, a) {
				f.region.heardSeq = p.seq
			}
		}
	}
}

// leastFollowed is the share of its occurrences after which a context must
// have been followed by a region to speak for it, those aside that ended while
// the region was in use. What comes once in a
// hundred rounds of a loop is not announced by every round.
const leastFollowed = 0.8

// reanchor predicts the need of f's region from a, if that is sharper than
// what is predicted now: if its gaps lay closer together. It reports whether
// it did.
func (p *Pinwheel) reanchor(f *follower, c *context, level int, a *anchor) bool {
	r := f.region
	if r.forgotten || r.last.seq == a.seq ||
		float64(f.gaps.n) < leastFollowed*float64(c.seen-1-f.overlap) ||
		r.predicted && f.gaps.spread() > r.spreadNs {
		return false
	}
	p.predict(r, &f.gaps, f.evidence(level), a.endNs)
	p.changed = append(p.changed, r.id)
	return true
}

func (p *Pinwheel) predict(r *need, g *gaps, e evidence, fromNs int64) {
	r.predicted = true
	r.evidence, r.fromNs, r.gapNs, r.spreadNs = e, fromNs, g.lowNs, g.spread()
	r.p = Prediction{
		NextNs:     p.margins.apply(e, fromNs, g.lowNs, r.last.endNs),
		ExpectedNs: fromNs + g.median(),
		LatestNs:   fromNs + g.highNs,
	}
	if e < coldGap {
		r.p.Confidence = float64(g.n) / float64(g.n+1)
	}
}

func (f *follower) evidence(level int) evidence {
	switch n := f.gaps.n; {
	case f.cold:
		return coldGap
	case level < levelFrame3:
		return alikeSite
	case level < levelSite:
		return similarSite
	case n <= 1:
		return oneGap
	case n <= 2:
		return twoGaps
	case n <= 4:
		return fewGaps
	case n <= 8:
		return someGaps
	}
	return manyGaps
}

// context returns the context of a signature.
func (p *Pinwheel) context(sig signature) *context {
	if c := p.young[sig]; c != nil {
		return c
	}
	if len(p.young) >= maxContexts/2 {
		p.old, p.young = p.young, make(map[signature]*context)
	}
	c := p.old[sig]
	if c == nil {
		c = new(context)
	}
	p.young[sig] = c
	return c
}

// Next implements Predictor.
func (p *Pinwheel) Next(id mem.RegionID, _ int64) (Prediction, bool) {
	if r := p.regions[id]; r != nil && r.predicted {
		return r.p, true
	}
	return Prediction{}, false
}

// Changed implements Predictor.
func (p *Pinwheel) Changed() []mem.RegionID { return p.changed }

// Forget implements Predictor.
func (p *Pinwheel) Forget(id mem.RegionID) {
	if r := p.regions[id]; r != nil {
		r.forgotten = true
		delete(p.regions, id)
	}
}
