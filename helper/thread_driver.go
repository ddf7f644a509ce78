package helper

import (
	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/schedule"
)

// driver is the state that only the helper's own OS thread touches.
type driver struct {
	*Thread
	clock     clock.Clock
	budget    *schedule.Budget // the Decider's
	cpuNs     int64            // processor time of the thread that the budget knows of
	pace      schedule.Pacer
	core      schedule.CoreWait
	waits     waits
	event     schedule.Event
	missed    schedule.Misses // scratch
	gone      []mem.RegionID
	source    int   // index of the source to begin with, in turn
	cpu       int   // that the thread is bound to; AnyCPU: none, or not known
	plannedNs int64 // when the next registration is to begin, as the Decider said last
	restNs    int64 // until when DQ is left alone, as the budget says
	acts      int   // actions so far
	behind    bool  // back from a park or a rest, and DQ was not yet found empty
	backoff   [schedule.Deregister + 1]backoff
	crew      crew
	skipped   schedule.Action   // the last answer of the Decider, if a backoff kept it from being tried
	batch     []schedule.Action // deregistrations that were prepared together, to be carried out
	begun     schedule.Action   // a registration that the Decider has named since then, or Idle
	ids       []mem.RegionID    // scratch
}

// loop takes one event, then one decision, and waits if there was neither an
// event nor an action (Li et al., CF'11, section 3.2: after one DQ item, RQ).
func (d *driver) loop() {
	for !d.stop.Load() {
		if p := d.place.Load(); p != nil {
			d.move(p)
		}
		for d.collect(false) {
		}
		nowNs := d.clock.NowNs()
		d.rest(nowNs)
		d.heed(nowNs)
		popped := d.restNs <= nowNs && d.pop()
		switch {
		case popped:
			d.take(nowNs)
			if d.behind {
				continue
			}
		case d.restNs > nowNs:
			d.behind = true
		default:
			d.behind = false
			d.forget()
			d.heed(nowNs) // what was missed while it was behind
		}
		waiting, acted := d.decide(nowNs)
		if !popped && !acted && waiting.DueNs > nowNs { // else the Decider has more to look at
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
		if d.begun.Kind == schedule.Register {
			d.batch = append(d.batch, d.begun)
		}
		nowNs := d.clock.NowNs()
		for _, a := range d.batch {
			d.opt.Decider.Done(a, nowNs, nowNs, errSkipped)
		}
		d.batch, d.begun = d.batch[:0], schedule.Action{}
		for d.collect(true) {
		}
		for !d.stop.Load() && d.place.Load() == nil {
			<-d.wake
		}
		// The program went on meanwhile. Deadlines from before are no measure of
		// lateness, and the Decider must learn all events in DQ before it acts.
		d.plannedNs, d.behind = schedule.Never, true
		return
	}
	if d.cpu = p.CPU; d.cpu != AnyCPU && pinThread(d.cpu) != nil {
		d.cpu = AnyCPU
	}
	d.crew.place(p)
	d.share(p)
}

// heed tells the Decider of misses, mostly before the events of those uses arrive. While the helper is behind, they are
// later than what the Decider knows.
func (d *driver) heed(nowNs int64) {
	if !d.behind && d.misses.some.Load() {
		d.misses.take(&d.missed)
		d.missed.Tell(d.opt.Decider, nowNs)
	}
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

// wait sleeps until there may be something to do.
func (d *driver) wait(nowNs int64, w schedule.Waiting) {
	d.publishLate()
	if usedNs := d.spend(nowNs); usedNs > 0 {
		d.pace.Looked(usedNs)
		d.waits.wakeupNs = d.pace.LookNs()
	}
	d.measureCore(nowNs)
	sleepNs := d.sleepNs(nowNs, w)
	d.clock.SleepNs(sleepNs, d.wake)
	if len(d.crew.results) == 0 { // else a worker has ended the sleep
		d.pace.Slept(nowNs, sleepNs, d.clock.NowNs())
	}
	d.counts.wakeups.Inc()
}

// publishLate makes the late uses those of Stats.
func (d *driver) publishLate() {
	if late := d.opt.Decider.Late(); late != d.late { // nobody else writes it
		d.mu.Lock()
		d.Thread.late = late
		d.mu.Unlock()
	}
}

// forget tells the Decider which regions are gone. DQ is empty now, so no earlier
// event can bring one of them back.
func (d *driver) forget() {
	d.gone = d.opt.Gone(d.gone[:0])
	for _, id := range d.gone {
		d.opt.Decider.Forget(id)
	}
}
