package schedule

import "pinwheel/mem"

// A rank that waits in a communication call leaves its processor unused. A helper on the same processor does
// its work then, if that costs little: a deregistration is put off, and a registration that is due soon begins
// at once. The helper hears of no wait, since that would take a system call on the communication path. It
// looks a few times instead, and each look costs a wake-up.
const (
	// putOffShare bounds how much longer a region is registered for that: 1/16 of the usual silence before its use, and
	// 1/16 after it.
	putOffShare = 16
	// mostEarlyNs bounds how much earlier a registration begins, too: its driver asks the Decider as if it were that
	// much later, and what a Budget counts must not run ahead by more than a little.
	mostEarlyNs = 10_000_000 // 10 ms
	// bytesPerCore says what memory is worth in processor time: nodes have some 4 GiB for each core, so 4 GiB
	// held for a time are worth a core for that time.
	bytesPerCore = 4 << 30
	// waitLooks is how often the helper looks for a wait before it deregisters all the same.
	waitLooks = 4
	// usualChance is the chance that a look finds the rank waiting, as long as nothing is known.
	usualChance = 0.25
)

// waits decides which work waits for the rank to wait, and which is brought forward because it does. Like Pacer it
// is pure.
type waits struct {
	chance     float64 // that a look finds the rank waiting, moving
	registerNs float64 // what a registration takes, moving
	wakeupNs   float64 // what a look takes, as the Pacer has measured

	// Deregistrations that are put off.
	untilNs int64 // they are done by then; 0: there are none
	lookNs  int64 // when to look next
	stepNs  int64 // between looks
	times   int64 // that any were put off

	earlyNs int64 // when to look because of the registration that is due next; never if that is not planned
}

func newWaits() waits {
	return waits{chance: usualChance, wakeupNs: WakeupNs, earlyNs: Never}
}

// found notes what a look found that had no other reason.
func (w *waits) found(waiting bool) {
	found := 0.0
	if waiting {
		found = 1
	}
	w.chance += (found - w.chance) / 8
}

// pays reports whether another look is worth its cost, if work of costNs can be done in the wait that it may find.
func (w *waits) pays(costNs float64) bool { return w.chance*costNs >= w.wakeupNs }

// decline notes that no look was worth its cost. Without looks the chance would never be measured again.
func (w *waits) decline() { w.chance += max(usualChance-w.chance, 0) * relaxation }

// putOff reports whether the deregistration a is put off. usualNs is the usual silence, and waiting says whether
// the rank waits now. Several that are put off together share the bound of the first.
func (w *waits) putOff(a *Action, nowNs, usualNs int64, waiting bool) bool {
	if w.untilNs == 0 {
		return !waiting && w.begin(a, nowNs, usualNs)
	}
	if nowNs >= w.lookNs {
		w.found(waiting)
		w.lookNs = nowNs + w.stepNs
		if !w.pays(float64(a.CostNs)) {
			w.untilNs = nowNs
		}
	}
	return !waiting && nowNs < w.untilNs
}

// begin begins to put off what frees the memory of a. That memory may cost as much as is saved: by bytesPerCore
// it is worth processor time.
func (w *waits) begin(a *Action, nowNs, usualNs int64) bool {
	if !w.pays(float64(a.CostNs)) {
		w.decline()
		return false
	}
	worthNs := w.chance * float64(a.CostNs) * bytesPerCore / float64(max(a.Pages, 1)*mem.PageSize)
	holdNs := int64(min(worthNs, float64(usualNs/putOffShare)))
	w.stepNs = max(holdNs/waitLooks, MinPollNs)
	if holdNs < w.stepNs {
		return false
	}
	w.untilNs, w.lookNs = nowNs+holdNs, nowNs+w.stepNs
	w.times++
	return true
}

// nextLookNs is when to look at what was put off.
func (w *waits) nextLookNs() int64 { return min(w.lookNs, w.untilNs) }

// nothingLeft notes that the Decider wants nothing deregistered. What follows after the bound is put off anew.
func (w *waits) nothingLeft(nowNs int64) {
	if nowNs >= w.untilNs {
		w.untilNs = 0
	}
}

// bringForward reports whether a registration that is due at dueNs begins now because the rank waits. If not, it
// returns when to look whether the rank waits, or never.
func (w *waits) bringForward(nowNs, dueNs, usualNs int64, waiting func() bool) (begins bool, lookNs int64) {
	if windowNs := dueNs - min(usualNs/putOffShare, mostEarlyNs); nowNs < windowNs {
		w.earlyNs = Never
		if w.pays(w.registerNs) {
			w.earlyNs = windowNs
		} else {
			w.decline()
		}
		return false, w.earlyNs
	}
	begins = waiting()
	if nowNs >= w.earlyNs {
		w.earlyNs = Never
		w.found(begins)
	}
	return begins, Never
}

// registered notes what a registration took.
func (w *waits) registered(tookNs int64) { w.registerNs += (float64(tookNs) - w.registerNs) / 8 }
