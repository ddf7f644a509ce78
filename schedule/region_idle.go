package schedule

// idleTime is how long a region went unused, in time and in phases.
type idleTime struct {
	ns     int64
	phases uint64
}

// idleHistory knows the longest idle time of the recent past: of between one and
// two windows. A single pause of an hour is forgotten in the end.
type idleHistory struct {
	window, before idleTime // the longest of the present window and of the one before
	n              int      // idle times in the present window
}

// idleWindow is how many idle times are remembered at least.
const idleWindow = 64

func (h *idleHistory) add(i idleTime) {
	if h.n++; h.n > idleWindow {
		h.window, h.before, h.n = idleTime{}, h.window, 1
	}
	h.window.ns, h.window.phases = max(h.window.ns, i.ns), max(h.window.phases, i.phases)
}

func (h *idleHistory) longestNs() int64   { return max(h.window.ns, h.before.ns) }
func (h *idleHistory) mostPhases() uint64 { return max(h.window.phases, h.before.phases) }
