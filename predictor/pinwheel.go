package predictor

import "pinwheel/mem"

// recentEvents is how many of the latest uses a need is learned from. The use
// just before a need announces it best.
const recentEvents = 8

// maxContexts bounds the memory of a program whose contexts never repeat. Contexts
// are kept in two generations of half as many: when the present one is full it
// becomes the old one, and contexts of the old one that were not seen since are
// forgotten.
const maxContexts = 1 << 15

// Options are the settings of the predictors with a context window.
type Options struct {
	// Window is the number of preceding uses that belong to a context, 0 to
	// MaxWindow.
	Window int
	// Lessons of an earlier run of the same job seed contexts as they are first met. nil: none. They are not
	// changed.
	Lessons *Lessons
	// Frame makes a return address the same in every run of a program, wherever its modules are loaded.
	// nil: addresses are the same.
	Frame func(addr uint64) uint64
	// Without are ideas to leave out, for comparisons.
	Without Idea
}

// Pinwheel is the default predictor. It differs from Paper in what it
// predicts: not the period of a call site, but how long it is from any event
// to the region's next need at any site. Every event in whose context a
// region's need followed before renews that region's prediction, so that the
// error of a prediction is a share of the last stretch before the need and not
// of the whole period. It names the shortest of the recent gaps less a margin
// that adapts to the program's jitter.
type Pinwheel struct {
	history history
	regions map[mem.RegionID]*region
	// The two generations of contexts; see maxContexts.
	contexts, oldContexts map[signature]*context

	events       [recentEvents]event
	seq          uint64              // events observed
	newSites     [recentEvents]event // the latest events at call sites that were new
	newSiteCount uint64
	margins      margins
	changed      []mem.RegionID
}

// region is what the predictor knows of one region.
type region struct {
	id        mem.RegionID
	last      event // its last use
	uses      int
	gaps      gaps // between its uses, whatever the context
	forgotten bool // contexts may still hold it

	predicted    bool
	prediction   Prediction
	predictedSeq uint64 // the last event from which it was predicted, plus 1
	evidence     evidence
	fromNs       int64 // end of that event
	gapNs        int64 // predicted from there; the least seen
	spreadNs     int64 // of the gaps seen
}

// event is a past use, from whose end gaps are measured.
type event struct {
	seq            uint64
	startNs, endNs int64
	contexts       [levels]*context
}

// NewPinwheel returns an empty predictor.
func NewPinwheel(o Options) *Pinwheel {
	return &Pinwheel{
		history:  history{window: min(max(o.Window, 0), MaxWindow)},
		regions:  make(map[mem.RegionID]*region),
		contexts: make(map[signature]*context),
		margins:  newMargins(),
	}
}

// Observe implements Predictor. It costs O(recentEvents) table lookups.
func (p *Pinwheel) Observe(u Use) {
	r := p.regions[u.Region]
	if r == nil {
		r = &region{id: u.Region}
		p.regions[u.Region] = r
	}
	if r.uses > 0 {
		p.learn(r, u.StartNs)
	}
	e := event{seq: p.seq, startNs: u.StartNs, endNs: u.EndNs}
	for level, sig := range p.history.next(&u) {
		c := p.context(sig)
		c.seen++
		e.contexts[level] = c
	}
	if e.contexts[levelFrame1].seen == 1 {
		p.newSites[p.newSiteCount%recentEvents] = e
		p.newSiteCount++
	}
	p.events[p.seq%recentEvents] = e
	p.seq++
	r.last = e
	r.uses++

	p.changed = append(p.changed[:0], u.Region)
	p.predictOwn(r)
	p.predictOthers(&e)
}

// learn learns from the need of r at nowNs: the gap from its own last use, in every
// context of that use, and the gaps from the latest events since.
func (p *Pinwheel) learn(r *region, nowNs int64) {
	gap := nowNs - r.last.endNs
	r.gaps.add(gap)
	if r.predicted && nowNs >= r.fromNs { // else it was made when r was in use already
		p.margins.observe(r.evidence, r.gapNs, nowNs-r.fromNs, nowNs)
	}
	newSiteNs := int64(-1) // start of the latest new call before this need
	for i := range min(p.newSiteCount, recentEvents) {
		if e := &p.newSites[i]; e.endNs <= nowNs {
			newSiteNs = max(newSiteNs, e.startNs)
		}
	}
	for _, c := range r.last.contexts {
		c.add(r, gap, newSiteNs >= r.last.endNs, p.seq)
	}
	for i := range min(p.seq, recentEvents) {
		e := &p.events[i]
		if e.seq <= r.last.seq {
			continue
		}
		for _, c := range e.contexts[levelSite:] {
			if e.endNs > nowNs {
				c.overlapped(r)
			} else {
				c.add(r, nowNs-e.endNs, newSiteNs >= e.endNs, p.seq)
			}
		}
	}
}

// predictOwn predicts the next need of r from its use just now: from the most
// specific context that it followed before, else from all its gaps.
func (p *Pinwheel) predictOwn(r *region) {
	r.predicted = false
	for level := levels - 1; level >= 0; level-- {
		f := r.last.contexts[level].follower(r)
		if f == nil {
			continue
		}
		p.predict(r, &f.gaps, f.evidence(level), r.last.endNs)
		return
	}
	if r.gaps.n > 1 { // one gap in another context says nothing
		p.predict(r, &r.gaps, anyContext, r.last.endNs)
	}
}

// predictOthers renews the predictions of the regions that followed the
// contexts of e, each by the most specific one that makes it sharper.
func (p *Pinwheel) predictOthers(e *event) {
	for level := levelWindow; level >= levelSite; level-- {
		c := e.contexts[level]
		for _, f := range c.followers {
			if f.region.predictedSeq != p.seq && p.predictAfter(e, c, f, level) {
				f.region.predictedSeq = p.seq
			}
		}
	}
}

// leastFollowed is how reliably a region must have followed a context to be
// predicted from it, as a share of the context's occurrences; occurrences that
// ended while the region was in use don't count. A need that comes once in a
// hundred rounds of a loop is not announced by every round.
const leastFollowed = 0.8

// predictAfter predicts the need of f's region from e if the gaps after this
// context lie closer together than those of the present prediction. It reports
// whether it did.
func (p *Pinwheel) predictAfter(e *event, c *context, f *follower, level int) bool {
	r := f.region
	if r.forgotten || r.last.seq == e.seq ||
		float64(f.gaps.n) < leastFollowed*float64(c.seen-1-f.overlap) ||
		r.predicted && f.gaps.spread() > r.spreadNs {
		return false
	}
	p.predict(r, &f.gaps, f.evidence(level), e.endNs)
	p.changed = append(p.changed, r.id)
	return true
}

func (p *Pinwheel) predict(r *region, g *gaps, e evidence, fromNs int64) {
	r.predicted = true
	r.evidence, r.fromNs, r.gapNs, r.spreadNs = e, fromNs, g.lowNs, g.spread()
	r.prediction = Prediction{
		NextNs:     p.margins.apply(e, fromNs, g.lowNs, r.last.endNs),
		ExpectedNs: fromNs + g.median(),
		LatestNs:   fromNs + g.highNs,
	}
	if e < coldGap {
		r.prediction.Confidence = float64(g.n) / float64(g.n+1)
	}
}

// context returns the context of a signature.
func (p *Pinwheel) context(sig signature) *context {
	if c := p.contexts[sig]; c != nil {
		return c
	}
	if len(p.contexts) >= maxContexts/2 {
		p.oldContexts, p.contexts = p.contexts, make(map[signature]*context)
	}
	c := p.oldContexts[sig]
	if c == nil {
		c = new(context)
	}
	p.contexts[sig] = c
	return c
}

// Lessons returns what was learned so far. It belongs to the caller.
func (p *Pinwheel) Lessons() Lessons { return Lessons{} }

// Next implements Predictor.
func (p *Pinwheel) Next(id mem.RegionID, _ int64) (Prediction, bool) {
	if r := p.regions[id]; r != nil && r.predicted {
		return r.prediction, true
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
