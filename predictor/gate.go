package predictor

// trigger is the event that came last before a need and left enough time to register, as far as it was
// the same again and again. Uses that overlap end in any order. So the trigger among those is the last of them,
// whichever it is, and later triggers are counted from there.
type trigger struct {
	steps      uint64 // events that had begun after the use, with the trigger; or uses that overlapped it; 0: there was none
	sig        uint64 // of the trigger; or lastOverlapping
	confidence int    // how often in a row it was this one, less after others
	gaps       gaps   // from its end to the need
}

// lastOverlapping stands for the last of the uses that overlap.
const lastOverlapping = 0

// provenConfidence is how often in a row a trigger must have been right to be relied on.
const provenConfidence = 8

// mostConfidence bounds how many failures a trigger survives.
const mostConfidence = 64

// triggerOf finds the trigger of a need of r at needNs that left it slackNs, and how long before the need it ended.
func (s *events) triggerOf(r *region, needNs, slackNs int64) (steps, sig uint64, gapNs int64) {
	a := s.trigger(r.lastIndex, needNs-slackNs)
	overlapping := s.overlappingAfter(r.lastIndex, r.lastEndNs)
	switch {
	case a == nil:
		return r.overlapped, lastOverlapping, needNs - r.lastEndNs
	case a.index-r.lastIndex <= overlapping:
		return r.overlapped + a.index - r.lastIndex, lastOverlapping, needNs - a.endNs
	}
	return a.index - r.lastIndex - overlapping, a.sig, needNs - a.endNs
}

// learn learns what the trigger of a need was. Two triggers in turn make a trigger lose confidence; the next one takes
// its place.
func (f *follower) learn(steps, sig uint64, gapNs int64) {
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
	if steps > 0 {
		t.gaps.add(gapNs)
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

// close closes the gate of r until the event with an index.
func (g *gates) close(r *region, index uint64) {
	r.gate.closed, r.gate.index = true, index
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
