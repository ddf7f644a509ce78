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
	seq     uint64 // uses observed
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
	predicted bool
	forgotten bool // contexts still hold it until they age out
	p         Prediction
}

// anchor is a past use, from whose end gaps are measured.
type anchor struct {
	seq            uint64
	startNs, endNs int64
	contexts       [levels]*context
	fresh          bool // this call had never been made with this region before
}

// context holds the needs that followed it.
type context struct {
	followers []*follower
}

// follower is one region's gaps after one context. A context has few
// followers: only regions needed within anchorMemory uses.
type follower struct {
	region *need
	gaps   gaps
	cold   bool // the only gap led through code that ran for the first time
}

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
		c, known := p.context(sig)
		a.contexts[level] = c
		a.fresh = a.fresh || level == levelFrame1 && !known
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
	if r.predicted {
		p.margins.observe(r.evidence, r.gapNs, nowNs-r.fromNs, nowNs)
	}
	freshNs := int64(-1) // start of the latest new call before this need
	for i := range p.anchors {
		if a := &p.anchors[i]; a.fresh && a.endNs <= nowNs && p.seq > 0 {
			freshNs = max(freshNs, a.startNs)
		}
	}
	for _, c := range r.last.contexts {
		c.add(r, gap, freshNs >= r.last.endNs)
	}
	for i := range min(p.seq, anchorMemory) {
		a := &p.anchors[i]
		if a.seq <= r.last.seq || a.endNs > nowNs {
			continue
		}
		for _, c := range a.contexts[levelSite:] {
			c.add(r, nowNs-a.endNs, freshNs >= a.endNs)
		}
	}
}

// add records that r was needed gapNs after this context.
func (c *context) add(r *need, gapNs int64, cold bool) {
	f := c.follower(r)
	if f == nil {
		f = &follower{region: r}
		c.followers = append(c.followers, f)
	}
	f.gaps.add(gapNs)
	f.cold = cold && f.gaps.n == 1
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
		e := f.evidence()
		if level < levelSite && e != coldGap {
			e = shallowSite
		}
		p.predict(r, &f.gaps, e, r.last.endNs)
		return
	}
	if r.all.n > 0 {
		p.predict(r, &r.all, anySite, r.last.endNs)
	}
}

// predictOthers anchors anew the regions that followed the contexts of a.
func (p *Pinwheel) predictOthers(a *anchor) {
	deep, shallow := a.contexts[levelWindow], a.contexts[levelSite]
	for _, f := range deep.followers {
		p.reanchor(f, a)
	}
	for _, f := range shallow.followers {
		if deep.follower(f.region) == nil {
			p.reanchor(f, a)
		}
	}
}

func (p *Pinwheel) reanchor(f *follower, a *anchor) {
	r := f.region
	if r.forgotten || r.last.seq == a.seq {
		return
	}
	// A single gap may put a need off only if nothing else is known.
	if r.predicted && f.gaps.n == 1 && p.margins.apply(f.evidence(), a.endNs, f.gaps.lowNs, r.last.endNs) > r.p.NextNs {
		return
	}
	p.predict(r, &f.gaps, f.evidence(), a.endNs)
	p.changed = append(p.changed, r.id)
}

func (p *Pinwheel) predict(r *need, g *gaps, e evidence, fromNs int64) {
	r.predicted = true
	r.evidence, r.fromNs, r.gapNs = e, fromNs, g.lowNs
	r.p = Prediction{
		NextNs:     p.margins.apply(e, fromNs, g.lowNs, r.last.endNs),
		ExpectedNs: fromNs + g.median(),
	}
	if e < coldGap {
		r.p.Confidence = float64(g.n) / float64(g.n+1)
	}
}

func (f *follower) evidence() evidence {
	switch n := f.gaps.n; {
	case f.cold:
		return coldGap
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

// context returns the context of a signature and whether it was known.
func (p *Pinwheel) context(sig signature) (c *context, known bool) {
	if c = p.young[sig]; c != nil {
		return c, true
	}
	if len(p.young) >= maxContexts/2 {
		p.old, p.young = p.young, make(map[signature]*context)
	}
	if c, known = p.old[sig]; !known {
		c = new(context)
	}
	p.young[sig] = c
	return c, known
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
