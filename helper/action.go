package helper

import (
	"pinwheel/mem"
	"pinwheel/predictor"
)

// Event is one completed use of a registered region, pushed into DQ by the
// communication path and popped by the helper. Only recorded there; hashing
// and every other thought happen on the helper (paper 004, section 3.1).
type Event struct {
	predictor.Use
	// Pages is the size of the whole region as it was registered, which may
	// be more than what the call used.
	Pages uint64
}

// ActionKind is what the Scheduler wants done.
type ActionKind uint8

const (
	// Idle: nothing to do until the next event.
	Idle ActionKind = iota
	// Wait: nothing to do until UntilNs or the next event.
	Wait
	// Register the region now; its need is near.
	Register
	// Deregister the region now; its need is far.
	Deregister
)

// Action is one decision of the Scheduler, for its driver to carry out.
type Action struct {
	Kind    ActionKind
	Region  mem.RegionID
	UntilNs int64 // for Wait
}

// Registrar carries out actions on regions. Both calls are idempotent.
type Registrar interface {
	// Register makes a known region registered.
	Register(id mem.RegionID) error
	// Deregister releases a region that nobody uses; it fails, changing
	// nothing, if the region is in use or unknown.
	Deregister(id mem.RegionID) error
}
