package predictor

import "pinwheel/mem"

// DefaultPeriodicityWindow is the number of uses that Periodicity compares.
const DefaultPeriodicityWindow = 64

// Periodicity is the detector of Freitag et al., "Exploring the
// Predictability of MPI Messages", IPDPS 2003 (reference [8] of Li et al., CF'11):
// the stream of uses has period m if, over a window of the last uses, every
// use equals the one m uses before. The smallest such m counts. A region is
// then due one period after each of its uses in the last period.
//
// It predicts nothing until the window is full and a whole pattern has been
// seen to repeat in it.
type Periodicity struct {
	history history
	stream  []sample // ring of the last len(stream) uses
	n       int      // uses observed
	runs    []int    // runs[m]: how many of the last uses equal the one m before
	period  int      // in uses; 0 if there is none
	changed []mem.RegionID
}

type sample struct {
	site    signature
	region  mem.RegionID
	startNs int64
}

// NewPeriodicity returns an empty predictor that compares so many uses, at
// least 4.
func NewPeriodicity(window int) *Periodicity {
	window = max(window, 4)
	return &Periodicity{stream: make([]sample, window), runs: make([]int, window/2+1)}
}

// Observe implements Predictor. It costs O(window).
func (p *Periodicity) Observe(u Use) {
	p.stream[p.n%len(p.stream)] = sample{p.history.signatures(&u)[levelSite], u.Region, u.StartNs}
	p.n++
	p.period = 0
	for m := len(p.runs) - 1; m > 0; m-- {
		if p.n <= m || p.back(0).site != p.back(m).site {
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
func (p *Periodicity) back(k int) *sample { return &p.stream[(p.n-1-k)%len(p.stream)] }

// Next implements Predictor.
func (p *Periodicity) Next(id mem.RegionID, nowNs int64) (Prediction, bool) {
	if p.period == 0 {
		return Prediction{}, false
	}
	periodNs := p.back(0).startNs - p.back(p.period).startNs
	for k := p.period - 1; k >= 0; k-- {
		if s := p.back(k); s.region == id && s.startNs+periodNs > nowNs {
			return Prediction{NextNs: s.startNs + periodNs, ExpectedNs: s.startNs + periodNs}, true
		}
	}
	return Prediction{}, false
}

// Changed implements Predictor.
func (p *Periodicity) Changed() []mem.RegionID { return p.changed }

// Forget implements Predictor. The region leaves with the window.
func (p *Periodicity) Forget(mem.RegionID) {}
