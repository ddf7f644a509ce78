package replay

import (
	"math"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// predictionErrors compares the prediction in force for a region when it is
// needed with that need. The error is relative to the actual interval, from
// the region's previous need to this one.
type predictionErrors struct {
	predictor.Predictor // the one that is watched
	inForce             map[mem.RegionID]int64
	n                   int64
	below05, below5     int64
	bins                [errorBins]int64
}

// The histogram of errors has bins of equal ratio, ten in a decade, from
// 1e-6 to 100 of the interval; the first also counts everything below.
const (
	errorBins      = 81
	errorDecadeLow = -6
	binsPerDecade  = 10
)

func newPredictionErrors(p predictor.Predictor) *predictionErrors {
	return &predictionErrors{Predictor: p, inForce: map[mem.RegionID]int64{}}
}

// Observe lets the watched predictor learn and notes what it now predicts.
func (p *predictionErrors) Observe(u predictor.Use) {
	p.Predictor.Observe(u)
	p.note(u.Region, u.EndNs)
	for _, id := range p.Predictor.Changed() {
		if id != u.Region {
			p.note(id, u.EndNs)
		}
	}
}

func (p *predictionErrors) note(id mem.RegionID, nowNs int64) {
	if pr, ok := p.Predictor.Next(id, nowNs); ok {
		p.inForce[id] = pr.NextNs
	} else {
		delete(p.inForce, id)
	}
}

// needed compares: the region is needed at t and was last needed at prevNs.
func (p *predictionErrors) needed(id mem.RegionID, t, prevNs int64) {
	said, ok := p.inForce[id]
	if !ok || prevNs == unknown || t <= prevNs {
		return
	}
	delete(p.inForce, id)
	e := math.Abs(float64(said-t)) / float64(t-prevNs)
	p.n++
	if e < 0.005 {
		p.below05++
	}
	if e < 0.05 {
		p.below5++
	}
	b := 0
	if e > 0 {
		b = int(math.Ceil((math.Log10(e) - errorDecadeLow) * binsPerDecade))
	}
	p.bins[min(max(b, 0), errorBins-1)]++
}
