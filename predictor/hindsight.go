package predictor

import (
	"math"
	"slices"
	"sort"

	"pinwheel/mem"
)

// hindsightLate is the share of the needs that Hindsight lets come before their prediction, at least.
const hindsightLate = 0.005

// Hindsight shows how far predictors of Pinwheel's kind can come. Of this very run it knows beforehand how long each
// context is followed by idle time, how often, and which events come in between; which of these idle times comes next it
// does not know. So it has one delay for each context, the same every time, from the use or from the trigger: of all
// such delays those with which the least memory is pinned while hindsightLate of the needs, or a few more, come sooner
// than predicted. No profile tells more of a context than that, and no price weighs better; but a predictor that follows
// changes of pace may come a little further.
type Hindsight struct {
	history  history
	roles    roles
	uses     map[role]uint64 // in the whole run; nil: the last use is not known
	met      map[signature]bool
	regions  map[mem.RegionID]*region
	contexts map[signature]*delays
	events   events
	gates    gates
	changed  []mem.RegionID
}

var _ Predictor = (*Hindsight)(nil)

// delays are those of one context.
type delays struct {
	idleNs    int64    // from the use
	trigger   *trigger // nil: the use
	afterNs   int64    // from the trigger
	insteadNs int64    // from the use, if another event came in the trigger's place
	medianNs  int64
	longestNs int64
}

// NewHindsight returns the predictor for a run with these uses, in the order in which they ended; Bytes and LeadNs are
// set. If first, it knows of a context only what a first run can know: nothing as long as neither the context nor its
// region has been met, at whatever level, and of no use that it is the last one.
func NewHindsight(o Options, uses []Use, first bool) *Hindsight {
	h := newHindsight(o)
	s := samples{of: map[signature][]idleSample{}}
	for i := range uses {
		s.observe(h, &uses[i])
	}
	chosen := s.choose()
	counts := map[role]uint64{}
	for _, r := range h.regions {
		counts[r.role] += uint64(r.uses)
	}
	h = newHindsight(o)
	h.contexts = chosen
	if first {
		h.met = map[signature]bool{}
	} else {
		h.uses = counts
	}
	return h
}

func newHindsight(o Options) *Hindsight {
	return &Hindsight{
		history: history{window: min(max(o.Window, 0), MaxWindow), frame: o.Frame},
		roles:   newRoles(), regions: make(map[mem.RegionID]*region),
	}
}

// use notes a use, and returns its region with the state from the use before, and the new contexts. How large a region is
// registered differs between the runs, so it is no part of a context.
func (h *Hindsight) use(u *Use) (r *region, sigs [levels]signature) {
	sized := *u
	sized.Bytes = 0
	site := h.history.site(&sized)
	if r = h.regions[u.Region]; r == nil {
		r = &region{id: u.Region}
		r.role, r.inRun = h.roles.take(site)
		h.regions[u.Region] = r
	}
	return r, h.history.next(&sized, r.role.hash())
}

// ended notes the event of a use that has ended.
func (r *region) ended(u *Use, e *event, sigs [levels]signature) {
	r.uses++
	r.lastEndNs, r.lastIndex, r.contexts = u.EndNs, e.index, sigs
}

// Observe implements Predictor.
func (h *Hindsight) Observe(u Use) {
	h.changed = append(h.changed[:0], u.Region)
	r, sigs := h.use(&u)
	h.gates.leave(r)
	if r.uses > 0 && h.met != nil {
		for _, sig := range r.contexts {
			h.met[sig] = true
		}
	}
	e := h.events.add(uint64(sigs[levelSite]), u.StartNs, u.EndNs)
	for o := h.gates.opened(e.index); o != nil; o = h.gates.opened(e.index) {
		d := h.contexts[o.contexts[levelWindow]]
		o.prediction.Gated, o.prediction.NextNs = false, o.lastEndNs+d.insteadNs
		if e.sig == d.trigger.sig {
			o.prediction.NextNs = e.endNs + d.afterNs
		}
		h.changed = append(h.changed, o.id)
	}
	r.ended(&u, e, sigs)
	d := h.contexts[sigs[levelWindow]]
	switch isLast := r.inRun.add(u.Bytes) == h.uses[r.role]; {
	case isLast:
		r.predicted, r.prediction = true, Prediction{NextNs: Never, ExpectedNs: Never, LatestNs: Never}
		return
	case d == nil || h.met != nil && r.uses < 3 && !slices.ContainsFunc(sigs[:], func(s signature) bool { return h.met[s] }):
		r.predicted = false
		return
	}
	r.predicted = true
	r.prediction = Prediction{
		NextNs: u.EndNs + d.idleNs, ExpectedNs: u.EndNs + d.medianNs, LatestNs: u.EndNs + d.longestNs, Confidence: .99,
	}
	if d.trigger != nil {
		h.gates.close(r, r.lastIndex+d.trigger.steps)
		r.prediction.Gated, r.prediction.AfterNs, r.prediction.GateNs = true, d.afterNs, Never
	}
}

// Next implements Predictor.
func (h *Hindsight) Next(id mem.RegionID, _ int64) (Prediction, bool) {
	if r := h.regions[id]; r != nil && r.predicted {
		return r.prediction, true
	}
	return Prediction{}, false
}

// Changed implements Predictor.
func (h *Hindsight) Changed() []mem.RegionID { return h.changed }

// Forget implements Predictor. The role stays taken: the uses do not say when it became free.
func (h *Hindsight) Forget(id mem.RegionID) {
	if r := h.regions[id]; r != nil {
		h.gates.leave(r)
		delete(h.regions, id)
	}
}

// samples are all idle times of a run.
type samples struct {
	of      map[signature][]idleSample
	needs   int
	backlog backlog
	log     []event // all of them; that with index i is at i-1
}

// idleSample is one of them.
type idleSample struct {
	bytes, idleNs, needNs int64
	readyNs               int64  // the latest event that leaves enough time ends at that time
	last                  uint64 // event of the use before
	steps, sig            uint64 // of that latest event; 0: there is none
}

func (s *samples) observe(h *Hindsight, u *Use) {
	r, sigs := h.use(u)
	leadNs := s.backlog.add(u.StartNs, u.LeadNs)
	if r.uses > 0 {
		idleNs := max(u.StartNs-r.lastEndNs, 0)
		x := idleSample{bytes: max(u.Bytes, 1), idleNs: idleNs, needNs: u.StartNs, last: r.lastIndex}
		x.readyNs = u.StartNs - leadNs - max(leadNs/2, reactionNs, int64(idleShare*float64(idleNs)))
		if a := h.events.trigger(r.lastIndex, x.readyNs); a != nil {
			x.steps, x.sig = a.index-r.lastIndex, a.sig
		}
		s.of[r.contexts[levelWindow]] = append(s.of[r.contexts[levelWindow]], x)
		s.needs++
	}
	e := h.events.add(uint64(sigs[levelSite]), u.StartNs, u.EndNs)
	s.log = append(s.log, *e)
	r.ended(u, e, sigs)
}

// choose returns the best delays of all contexts: those of the highest price of a late need with which more are late than
// hindsightLate says. Nothing with fewer late needs pins less.
func (s *samples) choose() map[signature]*delays {
	var cs []*candidate
	chosen := make(map[signature]*delays, len(s.of))
	for sig, xs := range s.of {
		c := s.candidate(xs)
		chosen[sig] = &c.delays
		cs = append(cs, c)
	}
	late := func(price float64) (n int) {
		for _, c := range cs {
			n += c.choose(price)
		}
		return n
	}
	most := int(hindsightLate * float64(s.needs))
	// Prices in byte nanoseconds, from that of a page for a millisecond to that of a terabyte for years.
	const least, doublings = 4096 * 1e6, 70
	steps := sort.Search(8*doublings, func(i int) bool { return late(least*math.Exp2(float64(i)/8)) <= most })
	late(least * math.Exp2(float64(max(steps-1, 0))/8))
	return chosen
}

// candidate is a context with what its delays may be.
type candidate struct {
	delays
	bytes   int64
	idle    sorted  // from the use
	gate    trigger // the most frequent one
	after   sorted  // from that trigger
	instead sorted  // from the use, where another event came in its place
	missing int     // needs before it, which would be late
}

func (s *samples) candidate(xs []idleSample) *candidate {
	c := &candidate{bytes: xs[0].bytes}
	type at struct{ steps, sig uint64 }
	count := map[at]int{}
	var best at
	var idle, after, instead []int64
	for _, x := range xs {
		idle = append(idle, x.idleNs)
		c.longestNs = max(c.longestNs, x.idleNs)
		k := at{x.steps, x.sig}
		if count[k]++; k.steps > 0 && k.steps < recentEvents && (count[k] > count[best] || best.steps == 0) {
			best = k
		}
	}
	c.idle = newSorted(idle)
	c.medianNs = c.idle.ns[(len(xs)-1)/2]
	if best.steps == 0 {
		return c
	}
	c.gate = trigger{steps: best.steps, sig: best.sig, confidence: mostConfidence}
	for _, x := range xs {
		switch e := s.eventAt(x.last + best.steps); {
		case e == nil || e.endNs > x.readyNs:
			c.missing++
		case e.sig == best.sig:
			after = append(after, x.needNs-e.endNs)
		default:
			instead = append(instead, x.idleNs)
		}
	}
	c.after, c.instead = newSorted(after), newSorted(instead)
	return c
}

func (s *samples) eventAt(index uint64) *event {
	if index > uint64(len(s.log)) {
		return nil
	}
	return &s.log[index-1]
}

// choose sets the best delays for the price of a late need, and returns how many are late then.
func (c *candidate) choose(price float64) (late int) {
	price /= float64(c.bytes)
	idleNs, cost, late := c.idle.best(price)
	c.idleNs, c.trigger = idleNs, nil
	if c.gate.steps == 0 {
		return late
	}
	afterNs, afterCost, afterLate := c.after.best(price)
	insteadNs, insteadCost, insteadLate := c.instead.best(price)
	if gated := afterCost + insteadCost + price*float64(c.missing); gated < cost {
		c.trigger, c.afterNs, c.insteadNs = &c.gate, afterNs, insteadNs
		return afterLate + insteadLate + c.missing
	}
	return late
}

// sorted are idle times in ascending order.
type sorted struct {
	ns  []int64
	sum float64
}

func newSorted(ns []int64) (s sorted) {
	slices.Sort(ns)
	s.ns = ns
	for _, v := range ns {
		s.sum += float64(v)
	}
	return s
}

// best returns the delay with the least cost: what is idle after it, and a price for each shorter time. It leaves a
// little for what the delays of others change in the run.
func (s *sorted) best(price float64) (ns int64, cost float64, late int) {
	cost = math.Inf(1)
	if len(s.ns) == 0 {
		return 0, 0, 0
	}
	above := s.sum
	for i, v := range s.ns {
		if c := above - float64(v)*float64(len(s.ns)-i) + price*float64(i); c < cost {
			ns, cost, late = v, c, i
		}
		above -= float64(v)
	}
	return ns - int64(idleShare*float64(ns)), cost, late
}
