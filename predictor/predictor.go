package predictor

import (
	"math"

	"pinwheel/mem"
)

// MaxFrames is the number of return addresses recorded per call site,
// innermost first.
const MaxFrames = 8

// Op is the kind of communication call, opaque here: part of the context.
type Op uint8

// Use is one completed use of a region, as the communication path recorded it.
// Times are nanoseconds of the clock of whoever drives the predictor.
type Use struct {
	Region  mem.RegionID
	Range   mem.Range // what the call used, inside the region
	StartNs int64     // when the region was needed
	EndNs   int64     // when the transfer had completed
	Op      Op
	Frames  [MaxFrames]uint64 // zero-filled
	// Early is set if the use was registered past the cache, which was not ready yet. The start delays the
	// program, so the gap that follows is longer than later ones.
	Early bool

	// What the Scheduler adds.
	Bytes  int64  // size of the whole region
	LeadNs int64  // how long it takes to make the region ready
	Known  *Known // of the driver, may be nil
	// WorthNs is for how long it is worth keeping the region registered, but idle, to have it ready for its next use.
	WorthNs float64
}

// Known is what predictors keep with a region, so that they need not look for it at each use. The driver of a predictor
// has one for each region that it knows, from the first use until Forget; without, Use.Known is nil. The zero
// value is for a region that was not used yet.
type Known struct {
	region *region
	scored *scoredRegion
}

// Never is the time of a need that does not come.
const Never = math.MaxInt64

// Prediction says when a region is needed next.
type Prediction struct {
	// NextNs is when the region should be ready. A cautious predictor names
	// the early end of what it expects.
	NextNs int64
	// ExpectedNs is when the need is expected, without caution. The error of a
	// prediction is measured from it.
	ExpectedNs int64
	// LatestNs is the latest that the need ever came. 0 if the predictor doesn't
	// keep track of that.
	LatestNs int64
	// Confidence, from 0 to 1, grows with the evidence behind the prediction:
	// n/(n+1) for n needs that followed this very context, 0 for a guess from
	// something less specific. The scheduler sets more aside for a guess.
	Confidence float64
	// Gated: an event has still to come that announces the need. Until then the region is not to be
	// registered; NextNs is a guess.
	Gated bool
	// AfterNs is how soon after that event the need may come.
	AfterNs int64
	// GateNs is when to stop waiting for that event: Never if it has come before enough needs to be relied on.
	GateNs int64
}

// Predictor learns from uses and predicts needs.
type Predictor interface {
	// Observe learns from one completed use. Uses arrive in order of EndNs as
	// far as one communication thread orders them.
	Observe(u Use)
	// Next predicts the next need of a region. ok is false if nothing is
	// known of it.
	Next(id mem.RegionID, nowNs int64) (p Prediction, ok bool)
	// Changed returns the regions whose prediction the last Observe may have
	// changed, the region that was used among them. The slice is valid until
	// the next call.
	Changed() []mem.RegionID
	// Forget drops a region that its cache no longer knows.
	Forget(id mem.RegionID)
}
