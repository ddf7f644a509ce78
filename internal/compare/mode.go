package compare

import "pinwheel/internal/launch"

// Mode is who keeps registrations.
type Mode string

// The modes.
const (
	Cache    Mode = "cache"    // the transport, in the cache that it has by default
	None     Mode = "none"     // nobody
	Pinwheel Mode = "pinwheel" // Pinwheel; the transport's cache is off
)

// Modes are all modes, in the order of tables.
var Modes = []Mode{Cache, None, Pinwheel}

// Order returns the modes in the order of a round, which begins with another one each time, so that none always
// follows the same.
func Order(round int) []Mode {
	first := round % len(Modes)
	return append(append([]Mode(nil), Modes[first:]...), Modes[:first]...)
}

// String says it for people.
func (m Mode) String() string {
	switch m {
	case Cache:
		return "the transport's cache"
	case None:
		return "no cache"
	}
	return "Pinwheel"
}

// apply makes a request for a job under Pinwheel one for a job in this mode.
func (m Mode) apply(r *launch.Request) {
	r.NoPinwheel = m != Pinwheel
	r.KeepCaches = m == Cache
}
