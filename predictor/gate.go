package predictor

// trigger is the event that came last before a need and left enough time to register, as far as it was
// the same again and again.
type trigger struct {
	steps      uint64 // after the use
	sig        uint64
	confidence int  // how often in a row it was this one, less after others
	gaps       gaps // from its end to the need
}

// mostConfidence bounds how many failures a trigger survives.
const mostConfidence = 64

// learn learns from a need at needNs, of which a was the trigger, or nil for none. Two triggers in
// turn make a trigger lose confidence; the next one takes its place.
func (f *follower) learn(a *event, lastIndex uint64, needNs int64) {
	var steps, sig uint64
	if a != nil {
		steps, sig = a.index-lastIndex, a.sig
	}
	t := f.trigger
	switch {
	case t == nil:
		t = &trigger{steps: steps, sig: sig}
		f.trigger = t
	case steps == t.steps && sig == t.sig:
		t.confidence = min(t.confidence+1, mostConfidence)
	case t.confidence == 0:
		*t = trigger{steps: steps, sig: sig}
	default:
		t.confidence /= 2
		return
	}
	if a != nil {
		t.gaps.add(needNs - a.endNs)
	}
}

// gate holds back the registration of one region until an event.
type gate struct {
	closed     bool
	index      uint64 // of the event that opens it
	prev, next *region
}

// gates are the closed gates, by the index of the events that open them.
type gates struct {
	slots [recentEvents]*region // lists
}

// enter closes the gate of r until its trigger, if that is known well enough.
func (g *gates) enter(r *region, t *trigger) {
	if t == nil || t.confidence < 1 || t.steps == 0 || t.steps >= recentEvents {
		return
	}
	r.gate.closed, r.gate.index = true, r.lastIndex+t.steps
	slot := &g.slots[r.gate.index%recentEvents]
	r.gate.next = *slot
	if *slot != nil {
		(*slot).gate.prev = r
	}
	*slot = r
}

// leave takes r out of the closed gates.
func (g *gates) leave(r *region) {
	if !r.gate.closed {
		return
	}
	if r.gate.next != nil {
		r.gate.next.gate.prev = r.gate.prev
	}
	if r.gate.prev != nil {
		r.gate.prev.gate.next = r.gate.next
	} else {
		g.slots[r.gate.index%recentEvents] = r.gate.next
	}
	r.gate = gate{}
}

// opened takes out one region whose gate opens at the event with an index; nil if there is none left.
func (g *gates) opened(index uint64) *region {
	r := g.slots[index%recentEvents]
	if r != nil {
		g.leave(r)
	}
	return r
}
