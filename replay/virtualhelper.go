package replay

import (
	"errors"
	"slices"

	"pinwheel/mem"
	"pinwheel/queue"
	"pinwheel/regcache"
	"pinwheel/schedule"
)

// virtualHelper is the helper thread in virtual time, on a core of its own:
// the loop of helper.Thread with modelled costs. It takes one event, asks for
// a decision, carries it out, and begins again. It sleeps as the Pacer says, and sleeps end on time.
// Under Options.HelperShare that of policy pinwheel leaves uses to be served on demand (onDemand). Others spend no more
// processor time than that share of a core. Both delay nobody: what was spent is Counts.HelperCPUNs.
type virtualHelper struct {
	decider schedule.Decider
	budget  *schedule.Budget // the decider's
	pace    schedule.Pacer
	path    *cachedPath
	wake    func(atNs int64)
	dqNs    int64 // cost of an event
	rqNs    int64 // cost of an action besides the registration itself

	dq       *queue.Ring[schedule.Event]
	gone     []mem.RegionID // scratch
	event    schedule.Event
	coming   []comingMiss // in order
	misses   schedule.Misses
	observed bool  // an event was just taken: decide before the next one
	restNs   int64 // until when DQ is left alone, as the budget says
	behind   bool  // back from a park or a rest, and DQ was not yet found empty

	onDemand bool // within a share, it leaves uses to be served on demand
	polls    bool // Options.Polls
	asleep   bool
	sleptNs  int64 // began then
	askedNs  int64 // to sleep so long

	doing operation   // its own; Idle if nothing is under way
	aside []operation // of its workers, on idle cores of their own

	workers int
}

// operation is an action that is under way until doneNs.
type operation struct {
	schedule.Action
	beganNs int64
	endNs   int64 // of the operation itself, which is what helper.Thread measures
	doneNs  int64
	err     error
}

// push adds an event at t.
func (v *virtualHelper) push(t int64, e *schedule.Event) {
	v.dq.Push(e)
	if v.polls {
		v.rouse(t)
	}
}

// missed notes that the communication path registers a region from needNs to readyNs, or waits for it. The helper hears
// of it then, and wakes.
func (v *virtualHelper) missed(id mem.RegionID, needNs, readyNs int64) {
	v.coming = append(v.coming, comingMiss{id, needNs, readyNs})
	v.rouse(readyNs)
}

// comingMiss is one of which the helper hears at readyNs.
type comingMiss struct {
	id              mem.RegionID
	needNs, readyNs int64
}

// rouse ends a sleep of the helper at t, unless it leaves DQ alone.
func (v *virtualHelper) rouse(t int64) {
	if v.asleep && v.sleptNs >= v.restNs {
		v.wake(t)
	}
}

// step runs the helper at t and returns when its next turn is. A worker that is done wakes it.
func (v *virtualHelper) step(t int64) (next int64) {
	if v.path.full != nil {
		v.finish(t)
		v.asleep = true
		v.path.stats.HelperCPUNs += v.path.full.look(t)
		return t + v.path.full.rule.PauseNs()
	}
	next = v.turn(t)
	if v.asleep {
		for i := range v.aside {
			next = min(next, v.aside[i].doneNs)
		}
		if len(v.coming) > 0 && t >= v.restNs {
			next = min(next, v.coming[0].readyNs)
		}
	}
	return next
}

func (v *virtualHelper) turn(t int64) (next int64) {
	if roused := v.finish(t); v.asleep && !roused {
		v.pace.Slept(v.sleptNs, v.askedNs, t)
	}
	v.asleep = false
	v.restNs = v.budget.Rest(t, v.pinnedBytes)
	resting := v.restNs > t
	if !v.observed {
		v.heed(t)
	}
	v.behind = v.behind || resting
	if !v.observed && !resting && v.observe(t) {
		return t + v.dqNs
	}
	if !v.observed && !resting {
		v.behind = false
		v.gone, _ = v.path.cache.Gone(v.gone[:0])
		for _, id := range v.gone {
			v.decider.Forget(id)
		}
		v.heed(t)
	}
	popped := v.observed
	v.observed = false
	a, waiting := v.ask(t)
	switch {
	case a.Aside && len(v.aside) < v.workers:
		v.spend(schedule.WakeupNs, t)
		v.aside = append(v.aside, v.carryOut(a, t+schedule.WakeupNs))
		return t + v.rqNs
	case a.Kind == schedule.Register || a.Kind == schedule.Deregister:
		v.doing = v.carryOut(a, t)
		return v.doing.doneNs
	case popped || !v.polls && waiting.DueNs <= t:
		return t // there may be more
	}
	v.asleep, v.sleptNs = true, t
	switch {
	case v.polls && resting:
		return max(t, min(waiting.DueNs, v.restNs))
	case v.polls:
		return max(t, min(waiting.DueNs, waiting.ReviewNs))
	case resting:
		v.askedNs = v.pace.RestNs(t, waiting, v.restNs)
	default:
		v.askedNs = v.pace.PlanNs(t, waiting, v.pinnedBytes())
	}
	v.spend(schedule.WakeupNs, t)
	return t + v.askedNs
}

// heed tells the decider of misses, unless it is behind.
func (v *virtualHelper) heed(t int64) {
	n := 0
	for ; n < len(v.coming) && v.coming[n].readyNs <= t; n++ {
		v.misses.Add(v.coming[n].id, v.coming[n].needNs)
	}
	v.coming = slices.Delete(v.coming, 0, n)
	if !v.behind {
		v.misses.Tell(v.decider, t)
	}
}

// limit sets the share of its rank's core that the helper may cost from t on, beside the other helpers there; 0 is no
// limit, on a core of its own.
func (v *virtualHelper) limit(share float64, helpers int, t int64) {
	full := v.onDemand && share > 0 && share < 1
	switch {
	case full && v.path.full == nil:
		v.path.full = newOnDemand(share, v.path, t)
		v.wake(t + v.path.full.rule.PauseNs())
	case !full:
		v.path.full = nil
	}
	if full {
		share = 0
	}
	v.budget.SetShare(share, t)
	v.pace.SetShare(v.budget.Share(), helpers)
}

// spend counts processor time of the helper.
func (v *virtualHelper) spend(ns, t int64) {
	v.path.stats.HelperCPUNs += ns
	v.budget.Spend(ns, t)
}

func (v *virtualHelper) pinnedBytes() int64 { return v.path.cache.Pinned().Bytes }

// ask asks for an action. A helper that polls is never late, and asks for nothing ahead of time.
func (v *virtualHelper) ask(t int64) (schedule.Action, schedule.Waiting) {
	if !v.polls {
		return v.pace.Ask(v.decider, t)
	}
	a := v.decider.Next(t)
	return a, a.Waiting(t)
}

// finish tells the decider how the actions went that are done at t, and reports whether a worker did any of them.
func (v *virtualHelper) finish(t int64) (roused bool) {
	if v.doing.Kind != schedule.Idle {
		v.report(&v.doing)
		v.doing = operation{}
	}
	left := v.aside[:0]
	for _, op := range v.aside {
		if op.doneNs > t {
			left = append(left, op)
			continue
		}
		v.report(&op)
		roused = true
	}
	v.aside = left
	return roused
}

func (v *virtualHelper) report(op *operation) {
	v.budget.Acted(op.doneNs-op.beganNs, op.doneNs)
	v.decider.Done(op.Action, op.beganNs, op.endNs, op.err)
	if errors.Is(op.err, regcache.ErrUnknown) {
		v.decider.Forget(op.Region)
	}
}

// observe takes one event at t, if there is one.
func (v *virtualHelper) observe(t int64) bool {
	if !v.dq.Pop(&v.event) {
		return false
	}
	v.pace.Used(v.event.EndNs)
	v.decider.Observe(v.event, t)
	v.observed = !v.behind
	v.spend(v.dqNs, t)
	return true
}

// carryOut begins an action at t.
func (v *virtualHelper) carryOut(a schedule.Action, t int64) operation {
	do := v.path.helperRegister
	if a.Kind == schedule.Deregister {
		do = v.path.helperDeregister
	}
	spentNs, err := do(t, a.Region)
	op := operation{Action: a, beganNs: t, endNs: t + spentNs, doneNs: t + spentNs + v.rqNs, err: err}
	v.path.stats.HelperCPUNs += op.doneNs - t
	return op
}
