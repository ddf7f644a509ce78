package predictor

// A need that came long before its prediction, although its context is well known, says that the program may run faster
// from now on. What comes next in other contexts is expected sooner by as much then, until those have been met again.
// Only the next few events are meant: in most programs such a need was an exception. Of the new pace, the context itself
// knows that one gap, which may have begun at the old one: it is as careful again as after its first.

const (
	// leastPace and mostPace are the shares of the predicted idle time between which a late need says so. One that comes
	// still sooner takes another way through the program.
	leastPace = 1. / 3
	mostPace  = .8
	// paceConfidence is that of a prediction from three gaps.
	paceConfidence = .75
	paceEvents     = 8
)

// pace is how much sooner needs come.
type pace struct {
	scale float64
	since uint64 // event
}

// late notes a late need, after a share of the idle time that was predicted with some confidence. index is that of the
// latest event. It reports whether the pace has changed.
func (s *pace) late(scale, confidence float64, index uint64) (changed bool) {
	if scale < leastPace || scale > mostPace || confidence < paceConfidence {
		return false
	}
	*s = pace{scale, index}
	return true
}

// of returns the factor for the gaps that follow a context.
func (s *pace) of(f *follower, index uint64) float64 {
	if f.learned < s.since && index < s.since+paceEvents {
		return s.scale
	}
	return 1
}
