package replay

import (
	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/queue"
)

// virtualHelper is the helper thread in virtual time, on a core of its own:
// the loop of helper.Thread with modelled costs. It takes one event, asks for
// a decision, carries it out, and begins again.
type virtualHelper struct {
	decider decider
	path    *cachedPath
	wake    func(atNs int64)
	dqNs    int64 // cost of an event
	rqNs    int64 // cost of an action besides the registration itself

	dq       *queue.Ring[helper.Event]
	event    helper.Event
	asleep   bool
	observed bool // an event was just taken: decide before the next one

	doing   helper.Action // under way until doneNs; Idle if nothing is
	beganNs int64
	doneNs  int64
	err     error
	gone    mem.Range // what the last deregistration releases
	goneNs  int64     // and when it is released
}

// decider is what the driver of a helper needs of helper.Scheduler.
type decider interface {
	Observe(e helper.Event, nowNs int64)
	Next(nowNs int64) helper.Action
	Done(a helper.Action, startNs, endNs int64, err error)
}

// push adds an event at t and wakes the helper if it sleeps.
func (v *virtualHelper) push(t int64, e *helper.Event) {
	v.dq.Push(e)
	if v.asleep {
		v.asleep = false
		v.wake(t)
	}
}

// released returns when the last deregistration has released r; it lies in
// the past, or is 0, if r is not being released.
func (v *virtualHelper) released(r mem.Range) int64 {
	if !v.gone.Overlaps(r) {
		return 0
	}
	return v.goneNs
}

// step runs the helper at t and returns when its next turn is.
func (v *virtualHelper) step(t int64) (next int64) {
	v.asleep = false
	if v.doing.Kind != helper.Idle {
		a := v.doing
		v.doing = helper.Action{}
		v.decider.Done(a, v.beganNs, t, v.err)
	}
	if !v.observed && v.dq.Pop(&v.event) {
		v.decider.Observe(v.event, t)
		v.observed = true
		v.path.stats.HelperCPUNs += v.dqNs
		return t + v.dqNs
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
		v.gone, spentNs, v.err = v.path.helperDeregister(t, a.Region)
		v.goneNs = t + spentNs
	}
	v.doing, v.beganNs, v.doneNs = a, t, t+spentNs+v.rqNs
	v.path.stats.HelperCPUNs += v.doneNs - t
}
