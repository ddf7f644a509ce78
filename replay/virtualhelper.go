package replay

import (
	"errors"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/queue"
	"pinwheel/regcache"
)

// virtualHelper is the helper thread in virtual time, on a core of its own:
// the loop of helper.Thread with modelled costs. It takes one event, asks for
// a decision, carries it out, and begins again. It sleeps as the Pacer says, and sleeps end on time.
// Under Options.HelperShare it spends no more processor time than that share of a core, but still delays
// nobody: what it spent is Counts.HelperCPUNs.
type virtualHelper struct {
	decider helper.Decider
	budget  *helper.Budget // the decider's
	pace    helper.Pacer
	path    *cachedPath
	wake    func(atNs int64)
	dqNs    int64 // cost of an event
	rqNs    int64 // cost of an action besides the registration itself

	dq       *queue.Ring[helper.Event]
	gone     []mem.RegionID // scratch
	event    helper.Event
	observed bool  // an event was just taken: decide before the next one
	restNs   int64 // until when DQ is left alone, as the budget says
	behind   bool  // back from a park or a rest, and DQ was not yet found empty

	polls   bool // Options.Polls
	asleep  bool
	sleptNs int64 // began then
	askedNs int64 // to sleep so long

	doing   helper.Action // under way until doneNs; Idle if nothing is
	beganNs int64
	endNs   int64 // of the operation itself, which is what helper.Thread measures
	doneNs  int64
	err     error
}

// push adds an event at t.
func (v *virtualHelper) push(t int64, e *helper.Event) {
	v.dq.Push(e)
	if v.polls {
		v.missed(t)
	}
}

// missed wakes the helper at t, because the communication path had to register memory.
func (v *virtualHelper) missed(t int64) {
	if v.asleep && v.sleptNs >= v.restNs {
		v.wake(t)
	}
}

// step runs the helper at t and returns when its next turn is.
func (v *virtualHelper) step(t int64) (next int64) {
	if v.asleep {
		v.pace.Slept(v.sleptNs, v.askedNs, t)
		v.asleep = false
	}
	v.finish()
	v.restNs = v.budget.Rest(t, v.pinnedBytes)
	resting := v.restNs > t
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
	}
	popped := v.observed
	v.observed = false
	a, waiting := v.ask(t)
	switch {
	case a.Kind == helper.Register || a.Kind == helper.Deregister:
		v.carryOut(a, t)
		return v.doneNs
	case popped:
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
	v.spend(helper.WakeupNs, t)
	return t + v.askedNs
}

// limit sets the share of a core that the helper may use from t on; 0 is no limit.
func (v *virtualHelper) limit(share float64, t int64) {
	v.budget.SetShare(share, t)
	v.pace.SetShare(v.budget.Share())
}

// spend counts processor time of the helper.
func (v *virtualHelper) spend(ns, t int64) {
	v.path.stats.HelperCPUNs += ns
	v.budget.Spend(ns, t)
}

func (v *virtualHelper) pinnedBytes() int64 { return v.path.cache.Stats().Pinned.Bytes }

// ask asks for an action. A helper that polls is never late, and asks for nothing ahead of time.
func (v *virtualHelper) ask(t int64) (helper.Action, helper.Waiting) {
	if !v.polls {
		return v.pace.Ask(v.decider, t)
	}
	a := v.decider.Next(t)
	return a, a.Waiting(t)
}

// finish tells the decider how the action went that was under way.
func (v *virtualHelper) finish() {
	a := v.doing
	if a.Kind == helper.Idle {
		return
	}
	v.doing = helper.Action{}
	v.budget.Acted(v.doneNs-v.beganNs, v.doneNs)
	v.decider.Done(a, v.beganNs, v.endNs, v.err)
	if errors.Is(v.err, regcache.ErrUnknown) {
		v.decider.Forget(a.Region)
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
func (v *virtualHelper) carryOut(a helper.Action, t int64) {
	var spentNs int64
	if a.Kind == helper.Register {
		spentNs, v.err = v.path.helperRegister(t, a.Region)
	} else {
		spentNs, v.err = v.path.helperDeregister(t, a.Region)
	}
	v.doing, v.beganNs, v.endNs = a, t, t+spentNs
	v.doneNs = v.endNs + v.rqNs
	v.path.stats.HelperCPUNs += v.doneNs - t
}
