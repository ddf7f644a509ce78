package schedule

import (
	"errors"
	"math"

	"pinwheel/mem"
	"pinwheel/predictor"
)

// Event is one completed use of a registered region, pushed into DQ by the
// communication path and popped by the helper. The communication path only records
// it; hashing and all else happens on the helper (Li et al., CF'11, section 3.1).
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
	// DueNs, for a Wait or a Deregister and if it is not 0, is when a registration is
	// due, or never. The work before that, at UntilNs, is not urgent: no sleep need end
	// to the microsecond for it.
	DueNs int64
	// Aside says that this takes long, and that another action should not wait until it is done: it is for a worker,
	// if one is free, and Next is to be asked at once.
	Aside bool
	// NoneHeld says, for a Wait or an Idle, that no region is registered: only a use that registers its own can follow.
	NoneHeld bool
}

// Waiting is until when there is nothing to do; never, if only an event can bring something.
type Waiting struct {
	DueNs    int64 // a registration is due, or something else that should not wait
	ReviewNs int64 // regions are to be looked at, not to the microsecond
	// NoneHeld: no region is registered. The next use is a miss, which ends a sleep, and there is no look to be had before.
	NoneHeld bool
}

// Waiting returns until when to wait for an action that is none.
func (a *Action) Waiting(nowNs int64) Waiting {
	w := Waiting{DueNs: a.UntilNs, ReviewNs: Never, NoneHeld: a.NoneHeld}
	switch {
	case a.Kind == Idle:
		w.DueNs = Never
	case a.DueNs != 0 && a.UntilNs > nowNs:
		w.DueNs, w.ReviewNs = a.DueNs, a.UntilNs
	}
	return w
}

// Why an action came to nothing although nothing is wrong, for Done.
var (
	ErrGone    = errors.New("schedule: region known no longer") // to the cache
	ErrInUse   = errors.New("schedule: region in use")          // it can't be deregistered now
	ErrAlready = errors.New("schedule: nothing to do")          // it was registered, or deregistered, before
)

// Never is a deadline that does not come.
const Never = math.MaxInt64
