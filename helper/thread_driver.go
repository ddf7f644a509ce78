package helper

import (
	"pinwheel/internal/clock"
	"pinwheel/schedule"
)

// driver is the state that only the helper's own OS thread touches.
type driver struct {
	*Thread
	loop   schedule.Loop
	cpuNs  int64  // processor time of the thread that the Decider knows of
	shared shared // so far
	core   schedule.CoreWait
	event  schedule.Event
	source int // index of the source to begin with, in turn
	acts   int // actions so far
	crew   crew
}

func newDriver(t *Thread) *driver {
	d := &driver{Thread: t, crew: newCrew(t)}
	d.loop = schedule.NewLoop(schedule.LoopOptions{
		Decider: t.opt.Decider, Pacer: schedule.NewPacer(d.opt.Clock.NowNs(), clock.LongNs),
		Missed: t.misses.take, Gone: t.opt.Gone, Prepare: t.opt.Registrar.Prepare,
	})
	return d
}

// run takes one event, then one decision, and waits if there was neither an
// event nor an action (Li et al., CF'11, section 3.2: after one DQ item, RQ).
func (d *driver) run() {
	for !d.stop.Load() {
		if p := d.place.Load(); p != nil {
			d.move(p)
		}
		for d.collect(false) {
		}
		nowNs := d.opt.Clock.NowNs()
		looks := d.loop.Begin(nowNs)
		if d.resting.Load() == looks {
			d.resting.Store(!looks)
		}
		popped := looks && d.pop()
		switch {
		case popped && d.observe(nowNs):
			continue // it is behind
		case looks && !popped:
			d.loop.Emptied(nowNs)
		}
		a, waiting := d.loop.Next(nowNs)
		switch {
		case a.Kind != schedule.Idle:
			d.act(a, nowNs)
		case !popped && waiting.DueNs > nowNs: // else there is more to look at
			d.wait(nowNs, waiting)
		}
	}
}

// move does what Place asked for. If the processor has gone, or this process may
// not use it any more, the kernel chooses one.
func (d *driver) move(p *Placement) {
	if !d.place.CompareAndSwap(p, nil) {
		return // there is a newer one
	}
	if p.Parked {
		d.loop.Parked(d.opt.Clock.NowNs())
		for d.collect(true) {
		}
		for !d.stop.Load() && d.place.Load() == nil {
			<-d.wake
		}
		return
	}
	if p.CPU != AnyCPU {
		_ = pinThread(p.CPU)
	}
	d.crew.place(p)
	d.share(p)
}

// pop takes one event, from each source in turn.
func (d *driver) pop() bool {
	sources := *d.sources.Load()
	for range sources {
		d.source++
		if d.source >= len(sources) {
			d.source = 0
		}
		if sources[d.source].Pop(&d.event) {
			return true
		}
	}
	return false
}

// pollNs is the pause between two looks of a helper that polls. It sleeps for so short a time, rather than to spin, so
// that it starves nobody where its processor turns out not to be idle.
const pollNs = 20_000 // 20 us

// wait sleeps until there may be something to do.
func (d *driver) wait(nowNs int64, w schedule.Waiting) {
	if usedNs := d.spend(nowNs); usedNs > 0 {
		d.loop.Pacer.Looked(usedNs)
	}
	d.publish(nowNs)
	d.measureCore(nowNs)
	sleepNs := d.loop.SleepNs(nowNs, w)
	if d.opt.Polls {
		sleepNs = min(sleepNs, pollNs)
	}
	d.opt.Clock.SleepNs(sleepNs, d.wake)
	if len(d.crew.results) == 0 { // else a worker has ended the sleep
		d.loop.Pacer.Slept(nowNs, sleepNs, d.opt.Clock.NowNs())
	}
	d.counts.wakeups.Inc()
}
