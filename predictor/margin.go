package predictor

// evidence is the kind of observation that a prediction rests on. Each kind has a
// safety margin of its own.
type evidence uint8

const (
	oneGap         evidence = iota // this context was followed by the region once
	twoGaps                        // twice
	fewGaps                        // up to 4 times
	someGaps                       // up to 8 times
	manyGaps                       // more often
	coldGap                        // once, and on that way code ran for the first time
	threeFrames                    // a less specific context: three frames of the stack
	oneOrTwoFrames                 // or fewer
	anyContext                     // the region's gaps anywhere
	evidenceKinds
)

// firstMargins are the margins to begin with, as a share of the predicted
// gap. They were chosen over the NAS traces so that fewer than one need in a
// hundred comes too early for them. A gap in which code ran for the first
// time says little: page faults and cold caches make it longer than it will be the
// next time, in SP.D more than twice as long.
var firstMargins = [evidenceKinds]float64{.25, .12, .06, .04, .03, .75, .3, .55, .5}

const (
	// A margin grows by marginUp when a need came before the prediction, and
	// shrinks by marginDown when it did not: in balance where
	// -ln(marginDown)/ln(marginUp), 6 %, of the bursts that rest on it
	// undershoot it; idleShare then covers most of these. This is adaptive
	// conformal inference (Gibbs and Candes, 2021) in multiplicative form.
	marginUp       = 1.3
	marginDown     = 0.99
	leastMargin    = 0.002
	greatestMargin = 0.8
	// burstNs is the time within which several needs count as one, since the slices
	// of an exchange are early or late together.
	burstNs = 1_000_000
	// idleShare is the part of the time since a region's last use that every
	// margin contains. Just before its need a region's predicted gap is short, and
	// the margin would be short too. Registering early by this share costs the same
	// share of what can be saved.
	idleShare = 0.008
)

// margins adapts the safety margin of every kind of evidence to the jitter
// of the program.
type margins struct {
	share    [evidenceKinds]float64
	changeNs [evidenceKinds]int64
}

func newMargins() margins { return margins{share: firstMargins} }

// apply returns the cautious end of a gap of gapNs that is predicted at fromNs, for a region
// last used at lastEndNs.
func (m *margins) apply(e evidence, fromNs, gapNs, lastEndNs int64) int64 {
	idle := fromNs + gapNs - lastEndNs
	return fromNs + gapNs - int64(m.share[e]*float64(gapNs)+idleShare*float64(idle))
}

// observe learns from a need at nowNs, which came after actualNs where gapNs was the
// shortest gap known.
func (m *margins) observe(e evidence, gapNs, actualNs, nowNs int64) {
	if gapNs <= 0 || nowNs-m.changeNs[e] < burstNs {
		return
	}
	m.changeNs[e] = nowNs
	if float64(gapNs-actualNs) > m.share[e]*float64(gapNs) {
		m.share[e] = min(m.share[e]*marginUp, greatestMargin)
	} else {
		m.share[e] = max(m.share[e]*marginDown, leastMargin)
	}
}
