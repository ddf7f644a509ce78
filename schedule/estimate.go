package schedule

import "pinwheel/verbs"

// estimate is the expected cost of an operation: the calibrated line, scaled by
// the times that operations of this run have taken.
type estimate struct {
	cost verbs.Cost
	mean float64 // moving average of measured/modelled
	dev  float64 // moving average of the distance from the mean
}

func newEstimate(c verbs.Cost) estimate { return estimate{cost: c, mean: 1} }

const (
	// outlier bounds what one measurement may say, as a multiple of the mean.
	// That of a preempted helper may be a thousand times the cost: after it,
	// every gap would look too short to release anything.
	outlier = 4
	// relaxation is how fast an estimate returns to the calibration while it keeps
	// the helper from acting, and thus from measuring again.
	relaxation = 1. / 64
)

// observe learns from one measured operation. A duration of 0 or less means that
// nothing was done. As with the retransmission timer of RFC 6298, a moving mean
// and deviation follow a machine that is slower or noisier than its calibration.
func (e *estimate) observe(pages uint64, tookNs int64) {
	model := e.cost.Ns(pages)
	if model <= 0 || tookNs <= 0 {
		return
	}
	d := min(float64(tookNs)/float64(model), outlier*e.mean) - e.mean
	e.mean += d / 8
	e.dev += (max(d, -d) - e.dev) / 4
}

// relax moves an estimate that is above the calibration back towards it.
func (e *estimate) relax() {
	e.mean -= max(0, e.mean-1) * relaxation
	e.dev -= e.dev * relaxation
}

// ns returns a duration in nanoseconds that an operation over this many pages will rarely exceed.
func (e *estimate) ns(pages uint64) int64 { return e.sum(pages, 1) }

// sum returns the same for several operations over this many pages together.
func (e *estimate) sum(pages uint64, operations int) int64 {
	return int64(e.model(pages, operations) * e.scale())
}

// scale is the factor between the calibrated line and the durations that are rarely exceeded.
func (e *estimate) scale() float64 { return e.mean + 2*e.dev }

// meanSum returns what they will take on average.
func (e *estimate) meanSum(pages uint64, operations int) int64 {
	return int64(e.model(pages, operations) * e.mean)
}

func (e *estimate) model(pages uint64, operations int) float64 {
	return e.cost.PerPageNs*float64(pages) + e.cost.FixedNs*float64(operations)
}
