package compare

import (
	"slices"

	"pinwheel/internal/tools/launch"
)

// Mode is who keeps registrations.
type Mode string

// The modes.
const (
	Cache    Mode = "cache"     // the transport, in the cache that it has by default
	None     Mode = "none"      // nobody
	OnDemand Mode = "on-demand" // nobody, by Pinwheel's policy of that name
	Paper    Mode = "paper"     // Pinwheel's policy of that name: what Li et al. (CF 2011) describe
	Pinwheel Mode = "pinwheel"  // Pinwheel, by the job's own policy
	// LeavePinned is Pinwheel's policy of that name: its path without a helper. It is in no list.
	LeavePinned Mode = "leave-pinned"
)

// Modes are those of any comparison, in the order of tables. The transport's cache is off in all but Cache.
var Modes = []Mode{Cache, None, Pinwheel}

// AllModes has the other policies as well.
var AllModes = []Mode{Cache, None, OnDemand, Paper, Pinwheel}

// Order returns the modes in the order of a round, which begins with another one each time, so that none always
// follows the same.
func Order(modes []Mode, round int) []Mode {
	first := round % len(modes)
	return slices.Concat(modes[first:], modes[:first])
}

// String says it for people.
func (m Mode) String() string {
	switch m {
	case Cache:
		return "the transport's cache"
	case None:
		return "no cache"
	case OnDemand:
		return "policy on-demand"
	case Paper:
		return "policy paper"
	case LeavePinned:
		return "policy leave-pinned"
	}
	return "Pinwheel"
}

// apply makes a request for a job under Pinwheel one for a job in this mode.
func (m Mode) apply(r *launch.Request) {
	r.NoPinwheel = m == Cache || m == None
	r.KeepCaches = m == Cache
	if m == OnDemand || m == Paper || m == LeavePinned {
		r.Settings = append(slices.Clip(r.Settings), "PINWHEEL_POLICY="+string(m))
	}
}
