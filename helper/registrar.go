package helper

import (
	"errors"

	"pinwheel/mem"
)

// Errors of a Registrar that did nothing although nothing is wrong.
var (
	// ErrGone: the cache has forgotten the region, and so does the schedule.Decider.
	ErrGone = errors.New("helper: region known no longer")
	// ErrInUse: the region can't be deregistered now.
	ErrInUse = errors.New("helper: region in use")
	// ErrAlready: the region was registered, or deregistered, already. The Decider
	// is told that the action was done, in no time.
	ErrAlready = errors.New("helper: nothing to do")
)

// Registrar carries out actions on regions. Errors other than those above are
// failures; after a series of them the Thread pauses. A Fault ends the Thread.
type Registrar interface {
	// Prepare says which regions Deregister will be called for next: the preparations that it takes
	// may cost no more for all than for one.
	Prepare(ids []mem.RegionID)
	// Register makes a known region registered.
	Register(id mem.RegionID) error
	// Deregister releases a region that nobody uses. An error means that
	// nothing was changed.
	Deregister(id mem.RegionID) error
}
