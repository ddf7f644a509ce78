package predictor

import "pinwheel/mem"

// Options are the settings of the predictors with a context window.
type Options struct {
	// Window is the number of preceding uses that belong to a context, 0 to
	// MaxWindow.
	Window int
	// Trained entries of an earlier run of the same job begin contexts as they are first met. nil: none. They are not
	// changed.
	Trained *Trained
	// Frame makes a return address the same in every run of a program, wherever its modules are loaded.
	// nil: addresses are the same.
	Frame func(addr uint64) uint64
	// Without are ideas to leave out, for comparisons.
	Without Idea
}

// Pinwheel is the default predictor. It differs from Paper in what it predicts: not the period of a
// call site, but how long a region stays idle after a use in this very context, and which event comes
// last before its next need. Until that event is seen, the region is not wanted: its gate is closed. An event that has
// proved right may be as late as it likes; the gate of any other is given up at the latest time at which the need has
// ever come. The stretch from the event to the need is short, so the error is a share of that stretch and not of the
// whole idle time. When in this stretch the region should be ready is a trade: registering early costs memory,
// registering late stalls the program.
type Pinwheel struct {
	without   Idea
	history   history
	bufferIDs bufferIDs
	regions   map[mem.RegionID]*region
	last      *region // that was used
	contexts  contexts
	events    events
	gates     gates
	backlog   backlog
	training  training
	changed   []mem.RegionID
}

// region is what the predictor knows of one region.
type region struct {
	id         mem.RegionID
	bufferID   bufferID
	inRun      *bufferUse
	uses       int
	bytes      int64
	worthNs    float64           // Use.WorthNs of its last use
	lastEndNs  int64             // end of its last use
	lastIndex  uint64            // of that event
	early      bool              // Use.Early of its last use
	overlapped uint64            // uses that ended before its last one did, but after it had begun
	contexts   [levels]signature // of its last use
	path       *path             // what followed those

	predicted  bool
	prediction Prediction
	follower   *follower // that the gate belongs to
	gate       gate
}

// NewPinwheel returns an empty predictor.
func NewPinwheel(o Options) *Pinwheel {
	return &Pinwheel{
		without:   o.Without,
		history:   history{window: min(max(o.Window, 0), MaxWindow), frame: o.Frame},
		bufferIDs: newBufferIDs(),
		regions:   make(map[mem.RegionID]*region),
		contexts:  newContexts(),
		training:  newTraining(o.Trained),
	}
}

// Observe implements Predictor.
func (p *Pinwheel) Observe(u Use) {
	p.changed = append(p.changed[:0], u.Region)
	site := p.history.site(&u)
	r := p.region(&u, site)
	p.last = r
	leadNs := p.backlog.add(u.StartNs, u.LeadNs)
	if r.uses > 0 {
		p.learn(r, &u, leadNs)
	}
	p.gates.leave(r)
	sigs := p.history.next(&u, r.bufferID.hash())
	e := p.events.add(uint64(sigs[levelSite]), u.StartNs, u.EndNs)
	p.openGates(e)

	r.uses++
	r.early, r.worthNs = u.Early, u.WorthNs
	r.bytes = max(u.Bytes, int64(u.Range.Len()))
	r.lastEndNs, r.lastIndex, r.overlapped = u.EndNs, e.index, p.events.overlappingBefore(e.index)
	r.contexts, r.path = sigs, p.contexts.path(&sigs, r.path, &p.training)
	innermost := r.path.followers[levelFrame1]
	e.isCold, innermost.seen = !innermost.seen, true
	if p.training.isLast(r.bufferID, r.inRun.add(r.bytes)) {
		r.predicted, r.follower = true, nil
		r.prediction = Prediction{NextNs: Never, ExpectedNs: Never, LatestNs: Never}
		return
	}
	p.predict(r)
}

// region returns what is known of the region of u.
func (p *Pinwheel) region(u *Use, site uint64) *region {
	if u.Known != nil && u.Known.region != nil {
		return u.Known.region
	}
	r := p.regions[u.Region]
	if r == nil {
		r = &region{id: u.Region}
		r.bufferID, r.inRun = p.bufferIDs.take(site)
		p.regions[u.Region] = r
		p.contexts.fit(len(p.regions))
	}
	if u.Known != nil {
		u.Known.region = r
	}
	return r
}

// reactionNs is the least time between a trigger and the moment to begin to register: a helper that
// sleeps must see it.
const reactionNs = 200_000 // 200 us

// learn learns from a need of r, in every context of its last use: how long it was idle, and
// which event announced the need.
func (p *Pinwheel) learn(r *region, u *Use, leadNs int64) {
	idleNs := max(u.StartNs-r.lastEndNs, 0)
	slackNs := max(reactionNs, int64(idleShare*float64(idleNs)))
	steps, sig, gapNs := p.events.triggerOf(r, u.StartNs, leadNs+slackNs)
	cold := r.early || r.path.followers[levelWindow].gaps.n == 0 && p.events.coldSince(r.lastIndex, u.StartNs)
	for level, f := range r.path.followers {
		if int(f.level) > level {
			continue // shared
		}
		if f.trained {
			if r.early {
				continue // the other run knows better
			}
			p.training.correct(r.contexts[level], f, idleNs)
		}
		if r.early && f.cold {
			f.gaps = gaps{}
		}
		f.gaps.add(idleNs)
		f.cold = cold && f.gaps.n == 1
		if level >= levelSite {
			f.learn(steps, sig, gapNs)
		}
	}
}

// predict predicts the next need of r from its use just now: from the most specific context that it
// followed before. What followed others says nothing.
func (p *Pinwheel) predict(r *region) {
	r.predicted, r.follower = false, nil
	r.prediction = Prediction{}
	for level := levels - 1; level >= 0; level-- {
		f := r.path.followers[level]
		switch {
		case f.gaps.n == 0:
			continue
		case f.cold, level < levelSite, f.trained && f.gaps.n == 1 && r.path.followers[levelSite].gaps.n == 1:
			r.predictGuess(&f.gaps)
		default:
			r.predictFrom(&f.gaps, r.lastEndNs)
			r.prediction.Confidence = float64(f.gaps.n) / float64(f.gaps.n+1)
			p.closeGate(r, f)
		}
		return
	}
}

// predictFrom predicts the next need of r by gaps that began at fromNs.
func (r *region) predictFrom(g *gaps, fromNs int64) {
	earlyNs := int64(idleShare * float64(fromNs+g.shortest()-r.lastEndNs))
	r.predicted = true
	r.prediction = Prediction{
		NextNs:     fromNs + g.best(r.worthNs) - earlyNs,
		ExpectedNs: fromNs + g.median(),
		LatestNs:   fromNs + g.longest(),
		Confidence: r.prediction.Confidence,
	}
}

// predictGuess predicts the next need of r from gaps that say little about this one.
func (r *region) predictGuess(g *gaps) {
	r.predicted = true
	r.prediction = Prediction{
		NextNs:     r.lastEndNs + g.guess(r.worthNs),
		ExpectedNs: r.lastEndNs + g.median(),
		LatestNs:   r.lastEndNs + g.longest(),
	}
}

// closeGate makes the prediction of r wait for its trigger, if that is known well enough and did not come already.
func (p *Pinwheel) closeGate(r *region, f *follower) {
	t := f.trigger
	if p.without&Gates != 0 || t == nil || t.confidence < 1 || t.steps == 0 || t.steps >= recentEvents {
		return
	}
	steps := t.steps
	if t.sig == lastOverlapping {
		if t.steps <= r.overlapped {
			r.predictFrom(&t.gaps, r.lastEndNs)
			return
		}
		steps -= r.overlapped
	}
	r.follower = f
	p.gates.close(r, r.lastIndex+steps)
	r.prediction.Gated, r.prediction.AfterNs = true, t.gaps.best(r.worthNs)
	r.prediction.GateNs = Never
	if t.confidence < provenConfidence {
		r.prediction.GateNs = r.prediction.LatestNs
	}
}

// openGates renews the predictions that have waited for e.
func (p *Pinwheel) openGates(e *event) {
	for r := p.gates.opened(e.index); r != nil; r = p.gates.opened(e.index) {
		f := r.follower
		t := f.trigger
		steps, overlapping := e.index-r.lastIndex, p.events.overlappingAfter(r.lastIndex, r.lastEndNs)
		switch {
		case t != nil && t.sig == lastOverlapping && steps <= overlapping,
			t != nil && t.sig == e.sig && steps-overlapping == t.steps:
			r.predictFrom(&t.gaps, e.endNs)
		case t != nil && t.sig != lastOverlapping && steps-overlapping < t.steps:
			p.gates.close(r, e.index+t.steps+overlapping-steps)
			continue
		default:
			r.prediction.Gated = false // something else happened: time alone must do
		}
		p.changed = append(p.changed, r.id)
	}
}

// Next implements Predictor.
func (p *Pinwheel) Next(id mem.RegionID, _ int64) (Prediction, bool) {
	r := p.last // most ask for what was used just now
	if r == nil || r.id != id {
		r = p.regions[id]
	}
	if r == nil || !r.predicted {
		return Prediction{}, false
	}
	return r.prediction, true
}

// Changed implements Predictor.
func (p *Pinwheel) Changed() []mem.RegionID { return p.changed }

// Forget implements Predictor.
func (p *Pinwheel) Forget(id mem.RegionID) {
	if r := p.regions[id]; r != nil {
		p.gates.leave(r)
		p.bufferIDs.giveBack(r.bufferID)
		if r == p.last {
			p.last = nil
		}
		delete(p.regions, id)
		p.contexts.fit(len(p.regions))
	}
}
