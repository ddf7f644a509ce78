package helper

import "pinwheel/schedule"

// What a driver does for a helper that shares its processor: it tells the Budget what the thread has used, leaves DQ
// alone when the Budget says so, and follows how long the thread waits for the processor.

// share begins with the limits of another placement.
func (d *driver) share(p *Placement) {
	nowNs := d.clock.NowNs()
	d.spend(nowNs)
	d.usedNs() // without a limit it was not asked for
	d.budget.SetShare(p.Share, nowNs)
	d.publish(nowNs)
	d.pace.SetShare(d.budget.Share(), p.Helpers)
	delay, _ := d.opt.runDelay()
	d.core.Begin(p.ShareNs(timeSliceNs()), delay)
	d.opt.Decider.SetShareNs(d.core.Ns())
}

// rest asks the budget whether the helper may look at DQ.
func (d *driver) rest(nowNs int64) {
	d.restNs = d.budget.Rest(nowNs, d.opt.PinnedBytes)
	if resting := d.restNs > nowNs; resting != d.resting.Load() {
		d.resting.Store(resting)
	}
}

// take tells the Decider of the event that was popped.
func (d *driver) take(nowNs int64) {
	if d.counts.events.Inc()%spendEvents == 0 {
		d.spend(nowNs) // a program may have events without a pause
	}
	d.pace.Used(d.event.EndNs)
	d.opt.Decider.Observe(d.event, nowNs)
}

// spendEvents is after how many events at the latest the budget is told what they took.
const spendEvents = 64

// spend tells the budget, if there is a limit, what processor time the thread has used since the last time.
func (d *driver) spend(nowNs int64) (usedNs int64) {
	if d.budget.Share() == 0 {
		return 0
	}
	usedNs = d.usedNs()
	d.budget.Spend(usedNs, nowNs)
	d.publish(nowNs)
	return usedNs
}

// publish makes the counters of the budget those of Stats.
func (d *driver) publish(nowNs int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = d.budget.Counts(nowNs)
}

// usedNs returns the processor time of the thread since the last call.
func (d *driver) usedNs() int64 {
	before := d.cpuNs
	d.cpuNs = d.opt.cpuNs()
	return d.cpuNs - before
}

// measureCore follows how long the helper waits for a core that it shares.
func (d *driver) measureCore(nowNs int64) {
	if !d.core.Due(nowNs) {
		return
	}
	if delay, ok := d.opt.runDelay(); ok && d.core.Observe(delay, nowNs) {
		d.opt.Decider.SetShareNs(d.core.Ns())
	}
}

// sleepNs is how long to sleep: until the budget allows a look, or as the pacer says.
func (d *driver) sleepNs(nowNs int64, w schedule.Waiting) int64 {
	if d.restNs > nowNs {
		return d.pace.RestNs(nowNs, w, d.restNs)
	}
	return d.pace.PlanNs(nowNs, w, d.opt.PinnedBytes())
}
