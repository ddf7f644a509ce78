package schedule

// CoreWait is how long the helper may be kept from a core that others use too: n*(t_slice + t_cs) of Li et al.,
// CF'11, equation 2. The slice that the kernel tells and the usual cost of a switch bound it. How long the kernel
// really lets the helper wait says more: mostly a thread that sleeps much gets the core at once.
type CoreWait struct {
	mostNs   int64 // by the slices of all that share the core; 0 if the helper has the core to itself
	nextNs   int64 // when to look at the kernel's counters again
	known    RunDelay
	meanNs   int64 // moving mean of the waits
	devNs    int64 // moving mean of the distance from it
	measured bool
}

// RunDelay counts, since a thread began, for how long it waited for a processor, and how often it got one.
type RunDelay struct{ WaitedNs, Runs int64 }

const (
	// coreWaitEveryNs is the time between two looks.
	coreWaitEveryNs = 1_000_000_000 // 1 s
	// leastRuns is how many times the helper must have got the core for their mean to mean something.
	leastRuns = 8
)

// SwitchNs is t_cs of that equation: a context switch between two processes with its cold caches.
const SwitchNs = 5_000 // 5 us

// Begin starts again on another core, of which others may have mostNs; 0 if there are none.
func (w *CoreWait) Begin(mostNs int64, now RunDelay) { *w = CoreWait{mostNs: mostNs, known: now} }

// Due reports whether it is time to look at the kernel's counters.
func (w *CoreWait) Due(nowNs int64) bool { return w.mostNs > 0 && nowNs >= w.nextNs }

// Observe learns from the counters as they are now, and reports whether Ns has changed.
func (w *CoreWait) Observe(now RunDelay, nowNs int64) bool {
	runs := now.Runs - w.known.Runs
	w.nextNs = nowNs + coreWaitEveryNs
	if runs < leastRuns {
		return false
	}
	meanNs := (now.WaitedNs - w.known.WaitedNs) / runs
	w.known = now
	if !w.measured {
		w.meanNs, w.devNs, w.measured = meanNs, meanNs/2, true
		return true
	}
	d := meanNs - w.meanNs
	w.meanNs += d / 8
	w.devNs += (max(d, -d) - w.devNs) / 4
	return true
}

// Ns is for how long to expect to be kept from the core. As with the retransmission timer of RFC 6298, it
// follows mean and deviation.
func (w *CoreWait) Ns() int64 {
	if !w.measured {
		return w.mostNs
	}
	return min(w.mostNs, w.meanNs+2*w.devNs+SwitchNs)
}
