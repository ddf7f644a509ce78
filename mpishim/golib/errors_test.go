//go:build cgo

package main

import (
	"math"
	"testing"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// expects is a Predictor that expects each region at a time that the test sets.
type expects struct {
	predictor.Predictor
	at map[mem.RegionID]int64
}

func (p *expects) Observe(predictor.Use)  {}
func (p *expects) Forget(id mem.RegionID) { delete(p.at, id) }
func (p *expects) Next(id mem.RegionID, _ int64) (predictor.Prediction, bool) {
	at, ok := p.at[id]
	return predictor.Prediction{NextNs: at, ExpectedNs: at}, ok
}

func TestErrorsAreSharesOfTheInterval(t *testing.T) {
	p := &expects{at: map[mem.RegionID]int64{}}
	m := newErrorMeter(p)
	// The end of one use, when the next is expected, and when it comes.
	for i, c := range []struct{ expected, came int64 }{
		{1_000_000, 1_000_000}, // exact
		{1_004_000, 1_000_000}, // 0.4 %
		{996_000, 1_000_000},
		{1_030_000, 1_000_000}, // 3 %
		{1_200_000, 1_000_000}, // 20 %
	} {
		id := mem.RegionID(i)
		p.at[id] = c.expected
		m.Observe(predictor.Use{Region: id, StartNs: -10, EndNs: 0})
		delete(p.at, id)
		m.Observe(predictor.Use{Region: id, StartNs: c.came, EndNs: c.came + 10})
		m.Observe(predictor.Use{Region: id, StartNs: 2 * c.came, EndNs: 2*c.came + 10}) // nothing was expected
	}
	n, err05, err5 := m.read()
	if n != 5 || math.Abs(err05-0.6) > 1e-9 || math.Abs(err5-0.8) > 1e-9 {
		t.Errorf("%d predictions, %g below 0.5 %%, %g below 5 %%; want 5, 0.6 and 0.8", n, err05, err5)
	}
}

func TestForgottenRegionIsNotMeasured(t *testing.T) {
	p := &expects{at: map[mem.RegionID]int64{1: 500}}
	m := newErrorMeter(p)
	m.Observe(predictor.Use{Region: 1, EndNs: 10})
	m.Forget(1)
	m.Observe(predictor.Use{Region: 1, StartNs: 500, EndNs: 510})
	if n, _, _ := m.read(); n != 0 {
		t.Errorf("%d predictions of a region that was forgotten", n)
	}
}
