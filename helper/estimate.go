package helper

import "pinwheel/verbs"

// estimate is the expected cost of an operation: the calibrated line, scaled
// by what the operations of this run have really taken.
type estimate struct {
	cost verbs.Cost
	mean float64 // moving average of measured/modelled
	dev  float64 // moving average of the distance from the mean
}

func newEstimate(c verbs.Cost) estimate { return estimate{cost: c, mean: 1} }

// observe takes in one measured operation. As with the retransmission timer
// of RFC 6298, a moving mean and deviation follow a machine that is slower or
// noisier than its calibration.
func (e *estimate) observe(pages uint64, tookNs int64) {
	model := e.cost.Ns(pages)
	if model <= 0 || tookNs <= 0 {
		return
	}
	d := float64(tookNs)/float64(model) - e.mean
	e.mean += d / 8
	e.dev += (max(d, -d) - e.dev) / 4
}

// ns returns a duration in nanoseconds that an operation over so many pages
// will rarely exceed.
func (e *estimate) ns(pages uint64) int64 {
	return int64(float64(e.cost.Ns(pages)) * (e.mean + 2*e.dev))
}
