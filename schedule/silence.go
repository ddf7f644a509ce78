package schedule

import "pinwheel/predictor"

// silenceRelease releases regions although no prediction says so: in long
// silences, in which the program computes and a pinned region costs memory for
// nothing. The event that ends the silence has all of them registered again. A
// release that was wrong costs one late registration, so the silence must be so
// long that the cost is nothing.
type silenceRelease struct{ released []*region }

const (
	// silenceRatio is how many times the cost of its registration a region
	// that was used only once is kept through silence: a wrong release
	// then adds at most 1/silenceRatio to the run time.
	silenceRatio = 4_000
	// overdueRatio is how many times longer than expected a region may be
	// idle in silence. NextNs would not do: the more cautious, the sooner.
	overdueRatio = 30
)

// isSilent reports whether a region may be released because the silence has
// lasted for so long.
func (s *Scheduler) isSilent(r *region, p *predictor.Prediction, predicted bool, nowNs int64) bool {
	silentNs := nowNs - max(r.lastEndNs, s.phaseEndNs)
	var limitNs int64
	if predicted {
		cycleNs := s.deregister.ns(r.pages) + s.register.ns(r.pages)
		limitNs = overdueRatio * max(p.ExpectedNs-r.lastEndNs, cycleNs)
	} else if !r.releasedInSilence {
		limitNs = silenceRatio * s.register.ns(r.pages)
	} else {
		return false
	}
	return s.has(predictor.Silences) && silentNs >= limitNs
}

// release notes that a region is released because of a silence.
func (s *silenceRelease) release(r *region) {
	s.released = append(s.released, r)
	r.releasedInSilence = true
}

// endSilence makes everything that was released in silence due now.
func (s *Scheduler) endSilence(nowNs int64) {
	for _, r := range s.silence.released {
		if !r.forgotten && !r.registered && !r.underWay {
			s.gated.remove(r)
			s.due.put(r, nowNs)
		}
	}
	s.silence.released = s.silence.released[:0]
}
