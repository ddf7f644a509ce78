//go:build cgo

package main

import (
	"sync"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// errorMeter is a Predictor that measures another one: how far the time at
// which a region was needed is from what was expected at the end of its use
// before, as a share of the interval between the two.
type errorMeter struct {
	predictor.Predictor
	expected map[mem.RegionID]expectation // the helper's

	mu                   sync.Mutex // protects all below; taken by the helper for an addition, and by the report
	total, good05, good5 int64
}

type expectation struct {
	fromNs, needNs int64
}

func newErrorMeter(p predictor.Predictor) *errorMeter {
	return &errorMeter{Predictor: p, expected: map[mem.RegionID]expectation{}}
}

// Observe implements predictor.Predictor.
func (m *errorMeter) Observe(u predictor.Use) {
	if e, ok := m.expected[u.Region]; ok && u.StartNs > e.fromNs {
		m.count(float64(abs(u.StartNs-e.needNs)) / float64(u.StartNs-e.fromNs))
	}
	m.Predictor.Observe(u)
	if p, ok := m.Next(u.Region, u.EndNs); ok {
		m.expected[u.Region] = expectation{u.EndNs, p.ExpectedNs}
	} else {
		delete(m.expected, u.Region)
	}
}

// Forget implements predictor.Predictor.
func (m *errorMeter) Forget(id mem.RegionID) {
	delete(m.expected, id)
	m.Predictor.Forget(id)
}

func (m *errorMeter) count(share float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total++
	if share < 0.005 {
		m.good05++
	}
	if share < 0.05 {
		m.good5++
	}
}

// read returns the number of predictions and the shares below 0.5 % and 5 %.
func (m *errorMeter) read() (n int64, err05, err5 float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total == 0 {
		return 0, 0, 0
	}
	return m.total, float64(m.good05) / float64(m.total), float64(m.good5) / float64(m.total)
}

func abs(n int64) int64 { return max(n, -n) }
