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
// a decision, carries it out, and begins again.
type virtualHelper struct {
	decider helper.Decider
	path    *cachedPath
	wake    func(atNs int64)
	dqNs    int64 // cost of an event
	rqNs    int64 // cost of an action besides the registration itself

	dq       *queue.Ring[helper.Event]
	gone     []mem.RegionID // scratch
	event    helper.Event
	asleep   bool
	observed bool // an event was just taken: decide before the next one

	doing   helper.Action // under way until doneNs; Idle if nothing is
	beganNs int64
	endNs   int64 // of the operation itself, which is what helper.Thread measures
	doneNs  int64
	err     error
}

// push adds an event at t and wakes the helper if it sleeps.
func (v *virtualHelper) push(t int64, e *helper.Event) {
	v.dq.Push(e)
	if v.asleep {
		v.asleep = false
		v.wake(t)
	}
}

// step runs the helper at t and returns when its next turn is.
func (v *virtualHelper) step(t int64) (next int64) {
	v.asleep = false
	if v.doing.Kind != helper.Idle {
		a := v.doing
		v.doing = helper.Action{}
		v.decider.Done(a, v.beganNs, v.endNs, v.err)
		if errors.Is(v.err, regcache.ErrUnknown) {
			v.decider.Forget(a.Region)
		}
	}
	if !v.observed && v.dq.Pop(&v.event) {
		v.decider.Observe(v.event, t)
		v.observed = true
		v.path.stats.HelperCPUNs += v.dqNs
		return t + v.dqNs
	}
	if !v.observed {
		v.gone, _ = v.path.cache.Gone(v.gone[:0])
		for _, id := range v.gone {
			v.decider.Forget(id)
		}
	}
	popped := v.observed
	v.observed = false
	a := v.decider.Next(t)
	switch {
	case a.Kind == helper.Register || a.Kind == helper.Deregister:
		v.carryOut(a, t)
		return v.doneNs
	case popped:
		return t // there may be more
	case a.Kind == helper.Wait:
		v.asleep = true
		return max(t, a.UntilNs)
	}
	v.asleep = true
	return never
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
