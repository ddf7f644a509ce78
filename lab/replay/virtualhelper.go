package replay

import (
	"errors"
	"slices"

	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/queue"
	"pinwheel/regcache"
	"pinwheel/schedule"
)

// virtualHelper is the helper thread in virtual time, on a core of its own:
// the loop of helper.Thread with modelled costs. It takes one event, asks for
// a decision, carries it out, and begins again. It sleeps as the Loop says, and sleeps end on time.
// Under Options.HelperShare it leaves uses to be served on demand (onDemand). It delays nobody: what it has spent is
// Counts.HelperCPUNs.
type virtualHelper struct {
	opt  *Options
	loop schedule.Loop
	path *cachedPath
	wake func(atNs int64)

	dq       *queue.Ring[schedule.Event]
	event    schedule.Event
	coming   []comingMiss // in order
	observed bool         // an event was just taken: decide before the next one

	polls   bool // Options.Polls
	asleep  bool
	sleptNs int64 // began then
	askedNs int64 // to sleep so long

	doing operation   // its own; Idle if nothing is under way
	aside []operation // of its workers, on idle cores of their own
}

func newVirtualHelper(d schedule.Decider, path *cachedPath, o *Options, polls bool) *virtualHelper {
	v := &virtualHelper{
		opt: o, path: path, polls: polls, dq: queue.NewRing[schedule.Event](o.DQEntries),
		asleep: true, askedNs: never, // until the first miss
	}
	l := schedule.LoopOptions{Decider: d, Missed: v.hear, Gone: v.gone}
	if !polls {
		l.Pacer = schedule.NewPacer(0, clock.LongNs)
	}
	v.loop = schedule.NewLoop(l)
	return v
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
		v.wakeUp(t)
	}
}

// missed notes that the communication path registers a region from needNs to readyNs, or waits for it. The helper hears
// of it then, and wakes.
func (v *virtualHelper) missed(id mem.RegionID, needNs, readyNs int64) {
	v.coming = append(v.coming, comingMiss{id, needNs, readyNs})
	v.wakeUp(readyNs)
}

// comingMiss is one of which the helper hears at readyNs.
type comingMiss struct {
	id              mem.RegionID
	needNs, readyNs int64
}

// wakeUp ends a sleep of the helper at t.
func (v *virtualHelper) wakeUp(t int64) {
	if v.asleep {
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
		if len(v.coming) > 0 {
			next = min(next, v.coming[0].readyNs)
		}
	}
	return next
}

func (v *virtualHelper) turn(t int64) (next int64) {
	if woken := v.finish(t); v.asleep && !woken {
		v.loop.Pacer.Slept(v.sleptNs, v.askedNs, t)
	}
	v.asleep = false
	popped := v.observed
	v.observed = false
	if !popped && v.loop.Begin(t) {
		if v.dq.Pop(&v.event) {
			v.observed = !v.loop.Observe(&v.event, t)
			v.path.stats.HelperCPUNs += v.opt.DQItemNs
			return t + v.opt.DQItemNs
		}
		v.loop.Emptied(t)
	}
	a, waiting := v.loop.Next(t)
	switch {
	case a.Aside && len(v.aside) < v.opt.Workers:
		v.path.stats.HelperCPUNs += schedule.WakeupNs
		v.aside = append(v.aside, v.carryOut(a, t+schedule.WakeupNs))
		return t + v.opt.RQItemNs
	case a.Kind != schedule.Idle:
		v.doing = v.carryOut(a, t)
		return v.doing.doneNs
	case popped || !v.polls && waiting.DueNs <= t:
		return t // there may be more
	}
	v.asleep, v.sleptNs = true, t
	if v.polls {
		return max(t, min(waiting.DueNs, waiting.ReviewNs))
	}
	v.askedNs = v.loop.SleepNs(t, waiting)
	v.path.stats.HelperCPUNs += schedule.WakeupNs
	return t + v.askedNs
}

// hear moves to m what the helper has missed by t.
func (v *virtualHelper) hear(m *schedule.Misses, t int64) {
	n := 0
	for ; n < len(v.coming) && v.coming[n].readyNs <= t; n++ {
		c := &v.coming[n]
		m.Add(schedule.Miss{Region: c.id, NeedNs: c.needNs, StalledNs: c.readyNs - c.needNs})
	}
	v.coming = slices.Delete(v.coming, 0, n)
}

// limit sets the share of its rank's time that the helper may cost from t on; 0 is no limit, on a core of its own.
func (v *virtualHelper) limit(share float64, t int64) {
	switch {
	case share == 0:
		v.path.full = nil
	case v.path.full == nil:
		v.path.full = newOnDemand(share, v.path, t)
		v.wake(t + v.path.full.rule.PauseNs())
	}
}

// priceNs is what saving a MiB for a second has cost lately.
func (v *virtualHelper) priceNs() float64 {
	if v.path.full != nil {
		return v.path.full.rule.PriceNs()
	}
	return v.loop.Decider.Cost().PriceNs
}

func (v *virtualHelper) gone(buf []mem.RegionID) []mem.RegionID { return v.path.cache.Gone(buf) }

// finish tells the decider how the actions went that are done at t, and reports whether a worker did any of them.
func (v *virtualHelper) finish(t int64) (woken bool) {
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
		woken = true
	}
	v.aside = left
	return woken
}

func (v *virtualHelper) report(op *operation) {
	err := op.err
	switch {
	case errors.Is(err, regcache.ErrUnknown):
		err = schedule.ErrGone
	case errors.Is(err, regcache.ErrInUse):
		err = schedule.ErrInUse
	}
	v.loop.Done(op.Action, op.beganNs, op.endNs, err)
}

// carryOut begins an action at t.
func (v *virtualHelper) carryOut(a schedule.Action, t int64) operation {
	do := v.path.helperRegister
	if a.Kind == schedule.Deregister {
		do = v.path.helperDeregister
	}
	spentNs, err := do(t, a.Region)
	op := operation{Action: a, beganNs: t, endNs: t + spentNs, doneNs: t + spentNs + v.opt.RQItemNs, err: err}
	v.path.stats.HelperCPUNs += op.doneNs - t
	return op
}
