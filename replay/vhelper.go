package replay

import (
	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// virtualHelper is the helper thread in virtual time: the loop of
// helper.Thread with modelled costs. It has a core of its own.
type virtualHelper struct {
	sched *helper.Scheduler
	path  *cachedPath
	wake  func(atNs int64)
	dqNs  int64 // cost of an item of DQ
	rqNs  int64 // cost of an item of RQ around the registration itself

	queue  []helper.Event // DQ
	head   int
	asleep bool
	doing  helper.Action // under way, until doneNs
	opAt   int64
	doneNs int64
	opErr  error
	opRng  mem.Range // that is being released
}

// push adds an event at t and wakes the helper if it sleeps.
func (v *virtualHelper) push(t int64, e helper.Event) {
	v.queue = append(v.queue, e)
	if v.asleep {
		v.asleep = false
		v.wake(t)
	}
}

// releasing returns the end of a deregistration that is under way and
// overlaps r, or 0.
func (v *virtualHelper) releasing(r mem.Range) int64 {
	if v == nil || v.doing.Kind != helper.Deregister || !v.opRng.Overlaps(r) {
		return 0
	}
	return v.doneNs
}

// step runs the helper at t; it returns when its next turn is.
func (v *virtualHelper) step(t int64) (next int64, err error) {
	if v.doing.Kind == helper.Register || v.doing.Kind == helper.Deregister {
		a := v.doing
		v.doing.Kind = helper.Idle
		v.sched.Done(a, v.opAt, t, v.opErr)
	}
	if v.head < len(v.queue) {
		e := &v.queue[v.head]
		if v.head++; v.head == len(v.queue) {
			defer func() { v.queue, v.head = v.queue[:0], 0 }()
		}
		v.sched.Observe(*e, t)
		t += v.dqNs
		v.path.stats.HelperCPUNs += v.dqNs
	}
	a := v.sched.Next(t)
	switch a.Kind {
	case helper.Register, helper.Deregister:
		return v.carryOut(a, t), nil
	}
	if v.head < len(v.queue) {
		return t, nil
	}
	v.asleep = true
	if a.Kind == helper.Wait {
		return max(t, a.UntilNs), nil
	}
	return never, nil
}

// carryOut begins an action at t and returns when it ends.
func (v *virtualHelper) carryOut(a helper.Action, t int64) int64 {
	p := v.path
	p.meter.begin(t)
	info := p.info(a.Region)
	if a.Kind == helper.Register {
		if v.opErr = p.cache.Register(a.Region); v.opErr == nil && len(p.meter.registered) > 0 {
			p.stats.HelperRegs++
			info.byHelper, info.needed = true, false
		}
	} else {
		v.opRng = p.cache.byID[a.Region].rng
		if v.opErr = p.cache.Deregister(a.Region); v.opErr == nil && p.meter.deregistered > 0 {
			p.stats.HelperDeregs++
			if info.byHelper && !info.needed {
				p.stats.WastedRegs++
			}
			info.byHelper = false
		}
	}
	v.doing, v.opAt, v.asleep = a, t, false
	v.doneNs = t + p.meter.spentNs + v.rqNs
	p.stats.HelperCPUNs += v.doneNs - t
	return v.doneNs
}

var _ = verbs.Costs{}
