package replay

import (
	"pinwheel/mem"
	"pinwheel/predictor"
)

// defaultPeriodicityWindow is the number of uses that the predictor of policy periodicity compares.
const defaultPeriodicityWindow = 64

// PeriodicityPredictor is the detector of Freitag et al., "Exploring the
// Predictability of MPI Messages", IPDPS 2003 (reference [8] of Li et al., CF'11):
// the stream of uses has period m if, over a window of the last uses, every
// use equals the one m uses before. The smallest such m counts. A region is
// then due one period after each of its uses in the last period.
//
// It predicts nothing until the window is full and a whole pattern has been
// seen to repeat in it.
type PeriodicityPredictor struct {
	stream  []sample // ring of the last len(stream) uses
	n       int      // uses observed
	runs    []int    // runs[m]: how many of the last uses equal the one m before
	period  int      // in uses; 0 if there is none
	changed []mem.RegionID
}

var _ predictor.Predictor = (*PeriodicityPredictor)(nil)

// repeated is what two uses have in common if one repeats the other.
type repeated struct {
	region mem.RegionID
	op     predictor.Op
	frames [predictor.MaxFrames]uint64
	size   int
}

type sample struct {
	repeated
	startNs int64
}

// NewPeriodicity returns an empty predictor that compares so many uses, at
// least 4.
func NewPeriodicity(window int) *PeriodicityPredictor {
	window = max(window, 4)
	return &PeriodicityPredictor{stream: make([]sample, window), runs: make([]int, window/2+1)}
}

// Observe implements predictor.Predictor. It costs O(window).
func (p *PeriodicityPredictor) Observe(u predictor.Use) {
	p.stream[p.n%len(p.stream)] = sample{repeated{u.Region, u.Op, u.Frames, u.SizeClass()}, u.StartNs}
	p.n++
	p.period = 0
	for m := len(p.runs) - 1; m > 0; m-- {
		if p.n <= m || p.back(0).repeated != p.back(m).repeated {
			p.runs[m] = 0
			continue
		}
		p.runs[m]++
		if p.runs[m] >= len(p.stream)-m {
			p.period = m
		}
	}
	p.changed = append(p.changed[:0], u.Region)
}

// back returns the use k before the last one.
func (p *PeriodicityPredictor) back(k int) *sample { return &p.stream[(p.n-1-k)%len(p.stream)] }

// Next implements predictor.Predictor.
func (p *PeriodicityPredictor) Next(id mem.RegionID, nowNs int64) (predictor.Prediction, bool) {
	if p.period == 0 {
		return predictor.Prediction{}, false
	}
	periodNs := p.back(0).startNs - p.back(p.period).startNs
	for k := p.period - 1; k >= 0; k-- {
		if s := p.back(k); s.region == id && s.startNs+periodNs > nowNs {
			return predictor.Prediction{NextNs: s.startNs + periodNs, ExpectedNs: s.startNs + periodNs}, true
		}
	}
	return predictor.Prediction{}, false
}

// Changed implements predictor.Predictor.
func (p *PeriodicityPredictor) Changed() []mem.RegionID { return p.changed }

// Forget implements predictor.Predictor. The region leaves with the window.
func (p *PeriodicityPredictor) Forget(mem.RegionID) {}
