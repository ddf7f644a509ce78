package replay

import (
	"math"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// ErrorHistogram counts prediction errors relative to the actual interval.
type ErrorHistogram struct {
	Below05, Below5 int64 // errors below 0.5 % and 5 % of the interval
	// Bins have equal ratio, ten to a decade: Bins[i] counts errors up to
	// UpperBound(i), the first everything below too, the last everything above.
	Bins [81]int64
}

const (
	errorDecadeLow = -6
	binsPerDecade  = 10
)

// UpperBound is the largest error that a bin counts, as a share of the interval.
func (*ErrorHistogram) UpperBound(bin int) float64 {
	return math.Pow(10, errorDecadeLow+float64(bin)/binsPerDecade)
}

func (h *ErrorHistogram) count(e float64) {
	if e < 0.005 {
		h.Below05++
	}
	if e < 0.05 {
		h.Below5++
	}
	bin := 0
	if e > 0 {
		bin = int(math.Ceil((math.Log10(e) - errorDecadeLow) * binsPerDecade))
	}
	h.Bins[min(max(bin, 0), len(h.Bins)-1)]++
}

func (h *ErrorHistogram) add(o *ErrorHistogram) {
	h.Below05 += o.Below05
	h.Below5 += o.Below5
	for i, n := range o.Bins {
		h.Bins[i] += n
	}
}

// predictionErrors watches a predictor, and compares the expectation that is
// in force for a region with the region's next need. The error is relative to
// the actual interval, from the region's previous need to this one.
type predictionErrors struct {
	predictor.Predictor
	inForce map[mem.RegionID]int64
	stats   *Counts
	hist    ErrorHistogram
}

func newPredictionErrors(p predictor.Predictor, stats *Counts) *predictionErrors {
	return &predictionErrors{Predictor: p, inForce: map[mem.RegionID]int64{}, stats: stats}
}

// Observe lets the predictor learn and notes what it now predicts.
func (p *predictionErrors) Observe(u predictor.Use) {
	p.Predictor.Observe(u)
	p.note(u.Region, u.EndNs)
	for _, id := range p.Changed() {
		if id != u.Region {
			p.note(id, u.EndNs)
		}
	}
}

func (p *predictionErrors) note(id mem.RegionID, nowNs int64) {
	if next, ok := p.Next(id, nowNs); ok {
		p.inForce[id] = next.ExpectedNs
	} else {
		delete(p.inForce, id)
	}
}

// needed compares: the region is needed at t and was needed before at prevNs.
func (p *predictionErrors) needed(id mem.RegionID, t, prevNs int64) {
	saidNs, ok := p.inForce[id]
	if !ok || t <= prevNs {
		return
	}
	delete(p.inForce, id)
	p.stats.Predictions++
	p.hist.count(math.Abs(float64(saidNs-t)) / float64(t-prevNs))
}

// Forget drops a region.
func (p *predictionErrors) Forget(id mem.RegionID) {
	delete(p.inForce, id)
	p.Predictor.Forget(id)
}
