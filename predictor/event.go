package predictor

// recentEvents is how far back a trigger may lie, in events.
const recentEvents = 256

// event is the end of a use. A need can be announced by it.
type event struct {
	index          uint64 // how many there were, with it
	sig            uint64 // of the operation, the call site, the buffer and its size
	startNs, endNs int64
	isCold         bool // its call site was new
}

// events are the latest events.
type events struct {
	ring  [recentEvents]event
	index uint64 // of the latest
}

// add notes an event.
func (s *events) add(sig uint64, startNs, endNs int64) *event {
	s.index++
	e := &s.ring[s.index%recentEvents]
	*e = event{index: s.index, sig: sig, startNs: startNs, endNs: endNs}
	return e
}

// trigger returns the last event after the one with an index that ended by latestNs; nil if there is
// none, or if it is too long ago to tell.
func (s *events) trigger(after uint64, latestNs int64) *event {
	for i := s.index; i > after && i+recentEvents > s.index; i-- {
		e := &s.ring[i%recentEvents]
		if e.endNs <= latestNs {
			return e
		}
	}
	return nil
}

// overlappingBefore returns how many uses ended just before the event with an index, but after it had begun.
func (s *events) overlappingBefore(index uint64) (n uint64) {
	startNs := s.ring[index%recentEvents].startNs
	for n+1 < recentEvents && n+1 < index && s.ring[(index-n-1)%recentEvents].endNs > startNs {
		n++
	}
	return n
}

// overlappingAfter returns how many uses ended just after the event with an index at endNs, but had begun before.
func (s *events) overlappingAfter(index uint64, endNs int64) (n uint64) {
	if index+recentEvents <= s.index {
		return 0 // too long ago to tell
	}
	for index+n < s.index && s.ring[(index+n+1)%recentEvents].startNs < endNs {
		n++
	}
	return n
}

// coldSince reports whether a call site was new between an event and a time.
func (s *events) coldSince(after uint64, untilNs int64) bool {
	for i := s.index; i > after && i+recentEvents > s.index; i-- {
		e := &s.ring[i%recentEvents]
		if e.isCold && e.endNs <= untilNs {
			return true
		}
	}
	return false
}

// backlog estimates how long the helper is busy with registrations before a need: those that are
// needed at about the same time are registered one after the other.
type backlog struct{ ns, atNs int64 }

// add adds a need at a time, whose region takes registerNs, and returns how long before it the first of
// the registrations must begin.
func (b *backlog) add(atNs, registerNs int64) (leadNs int64) {
	if atNs > b.atNs {
		b.ns = max(0, b.ns-(atNs-b.atNs))
		b.atNs = atNs
	}
	b.ns += registerNs
	return b.ns
}
