package engine

import (
	"sync"

	"pinwheel/helper"
	"pinwheel/internal/clock"
	"pinwheel/placement"
	"pinwheel/predictor"
)

// Engine serves one front end in one process.
type Engine struct {
	warn, debug func(message string)
	meter       *meter

	// All nil without a helper.
	helper  *helper.Thread
	placer  *placement.Placer
	scored  *predictor.Scored
	learner *learner    // nil without a profile
	where   string      // where the helper runs, for reports
	cost    float64     // the most that it may cost its rank
	alone   bool        // whether it has no workers
	procs   func(n int) // HelperOptions.Procs

	onDemand func(on bool) // HelperOptions.OnDemand

	node *member // nil: this process is alone

	mu   sync.Mutex // protects said; warn and debug are called without it
	said map[string]bool
}

// New returns an Engine without a helper. warn gets a line whenever Pinwheel does
// less than it should; debug, unless it is nil, gets the stack of a fault.
func New(warn, debug func(message string)) *Engine {
	clock.Calibrate()
	return &Engine{warn: warn, debug: debug, meter: newMeter(clock.NowNs), said: make(map[string]bool)}
}

// Close stops the helper. What is registered stays so. It may be called more than once.
func (e *Engine) Close() error {
	if e.placer != nil {
		e.placer.Close()
	}
	e.node.stop()
	if e.helper != nil {
		return e.helper.Close()
	}
	return nil
}
