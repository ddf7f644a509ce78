package explain

import (
	"math"

	"pinwheel/lab/replay"
)

// Cause is a reason for which the policy pinned other memory than the clairvoyant bound.
type Cause uint8

// The causes, in the order in which one of them is charged with a page that several registrations pin at the same
// time.
const (
	Unknown   Cause = iota // kept, because nothing was known of its next need: above all the first gap
	NeverUsed              // pinned after the last use of the region
	Wasted                 // registered by the helper and released without a use
	Early                  // kept or registered before the need, on the evidence of fewer gaps than wellKnown
	Margin                 // the same on wellKnown gaps and more
	Queue                  // registered before its deadline asked for it: others came first, or the deadline moved
	Release                // between the end of a use and a release that was due
	Merged                 // pinned because another part of the region was in use
	Late                   // negative: the communication path registered, in the middle of the bound's stretch
	Stalls                 // the policy's own stalls moved the needs against the bound's run

	Causes = iota
)

// wellKnown is the number of gaps from which a prediction counts as known.
const wellKnown = 5

var causeNames = [Causes]string{
	"first gap kept", "never again", "wasted", "early", "margin", "queue", "release", "merged", "late", "stalls",
}

var causeKeys = [Causes]string{"first_gap", "never_again", "wasted", "early", "margin", "queue", "release", "merged", "late", "stalls"}

var causeDocs = [Causes]string{
	"kept, because nothing was known of its next need: above all before the second use",
	"pinned after the last use of the region",
	"registered by the helper, and released without a use",
	"kept or registered before the need, on a prediction from fewer than five gaps",
	"the same, from five gaps and more",
	"registered before the deadline asked for it: others came first, or the deadline moved",
	"between the end of a use and a release that was due",
	"pinned because another part of the region was in use",
	"negative: the communication path registered, where the oracle would have begun before the need",
	"the policy's own stalls moved the needs against the oracle's run",
}

// Doc says in a line what a cause is.
func (c Cause) Doc() string { return causeDocs[c] }

func (c Cause) String() string { return causeNames[c] }

// Key names a cause in JSON.
func (c Cause) Key() string { return causeKeys[c] }

// tellCauses gives each part of a stretch in which a registration was idle its cause. Costs are those of registering
// and releasing the region once, with all around it.
func (h *history) tellCauses(r *replay.Registration, s span, g gap, cycleNs int64, charge func(span, Cause)) {
	isKept := g.endNs != replay.Never && s.from <= g.endNs
	switch {
	case isKept:
		h.kept(s, g, cycleNs, charge)
	case g.needNs == replay.Never:
		charge(s, NeverUsed)
	case s.to < g.needNs:
		charge(s, Wasted)
	default:
		h.registered(r, s, charge)
	}
}

// kept is about the time from the end of a use to the release, or to the next need: what did the forecasts say?
func (h *history) kept(s span, g gap, cycleNs int64, charge func(span, Cause)) {
	f, ok := h.forecastAt(s.from)
	for s.from < s.to {
		i, _ := h.after(s.from)
		part := s
		if i < len(h.forecasts) {
			part.to = min(s.to, h.forecasts[i].MadeNs)
		}
		s.from = part.to
		seen := ok && f.MadeNs >= g.endNs // else the forecast is of the need before: the helper has not seen the use yet
		switch releaseNs := f.NextNs - cycleNs; {
		case ok && !seen:
			charge(part, Release)
		case !ok || !f.Predicted:
			charge(part, nothingKnown(g))
		default:
			pays := span{part.from, min(part.to, max(part.from, releaseNs))}
			charge(pays, Release)
			if g.needNs == replay.Never {
				charge(span{pays.to, part.to}, NeverUsed)
			} else {
				charge(span{pays.to, part.to}, ownCause(f.Confidence))
			}
		}
		if i < len(h.forecasts) {
			f, ok = h.forecasts[i], true
		}
	}
}

func nothingKnown(g gap) Cause {
	if g.needNs == replay.Never {
		return NeverUsed
	}
	return Unknown
}

// registered is about the time from a registration by the helper to the need that it was for: the forecast that was in force in
// the end tells when it should have begun.
func (h *history) registered(r *replay.Registration, s span, charge func(span, Cause)) {
	f, ok := h.forecastAt(s.to)
	dueNs := s.to
	if ok && f.Predicted && !f.Gated {
		dueNs = min(dueNs, max(s.from, f.NextNs-(r.ReadyNs-r.BeganNs)))
	}
	charge(span{s.from, dueNs}, Queue)
	charge(span{dueNs, s.to}, ownCause(f.Confidence))
}

// ownCause tells how sure a prediction was that kept or registered too early.
func ownCause(confidence float64) Cause {
	if gapsOf(confidence) >= wellKnown {
		return Margin
	}
	return Early
}

// gapsOf undoes predictor.Prediction.Confidence: n/(n+1) for n gaps.
func gapsOf(confidence float64) int {
	return int(math.Round(confidence / (1 - min(confidence, 0.999))))
}
