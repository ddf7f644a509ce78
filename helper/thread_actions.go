package helper

import (
	"pinwheel/internal/fault"
	"pinwheel/schedule"
)

// timedActs: one action in so many is timed. The two system calls take as long as a short action.
const timedActs = 8

// act carries out an action, or has a worker do it.
func (d *driver) act(a schedule.Action, nowNs int64) {
	if a.Aside && d.crew.hand(a) {
		d.noteStart(a, nowNs)
		return
	}
	timed := d.acts%timedActs == 0
	d.acts++
	cpuNs := int64(0)
	if timed {
		cpuNs = ownCPUNs()
	}
	startNs := d.opt.Clock.NowNs()
	d.noteStart(a, startNs)
	err := d.do(&a)
	endNs := d.opt.Clock.NowNs()
	if timed {
		d.counts.actionNs.Add(timedActs * (ownCPUNs() - cpuNs))
	}
	d.spend(endNs)
	d.acted(a, startNs, endNs, err)
}

// collect takes in what a worker has done, and reports whether there was anything.
func (d *driver) collect(wait bool) bool {
	r, ok := d.crew.take(wait)
	if ok {
		d.counts.byWorkers.Inc()
		d.counts.workersCPU.Add(r.cpuNs)
		d.counts.actionNs.Add(r.cpuNs)
		d.acted(r.Action, r.startNs, r.endNs, r.err)
	}
	return ok
}

// acted takes in how an action went.
func (d *driver) acted(a schedule.Action, startNs, endNs int64, err error) {
	if f := fault.In(err); f != nil {
		panic(f) // the layers below have contained it, but it ends the helper
	}
	failed := d.loop.Done(a, startNs, endNs, err)
	switch {
	case failed:
		d.counts.failures.Inc()
	case err != nil:
	case a.Kind == schedule.Register:
		d.counts.registers.Inc()
	default:
		d.counts.deregs.Inc()
	}
}

// noteStart notes when a registration begins.
func (d *driver) noteStart(a schedule.Action, startNs int64) {
	if a.Kind != schedule.Register {
		return
	}
	if offNs, planned := d.loop.Began(startNs); planned {
		d.counts.starts.note(offNs)
	}
}
