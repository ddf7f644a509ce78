package helper

import "pinwheel/mem"

// Registrar carries out actions on regions. Errors other than schedule.ErrGone, ErrInUse and ErrAlready are
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
