package helper

// What a driver does for a helper that shares its processor: it tells the Budget what the thread has used, and follows how
// long the thread waits for the processor.

// share begins with the limits of another placement.
func (d *driver) share(p *Placement) {
	nowNs := d.opt.Clock.NowNs()
	d.spend(nowNs)
	d.usedNs() // without a limit it was not asked for
	d.loop.SetShare(p.Share, p.Helpers, nowNs)
	delay, _ := d.opt.runDelay()
	d.core.Begin(p.ShareNs(timeSliceNs()), delay)
	d.opt.Decider.SetShareNs(d.core.Ns())
}

// observe takes in the event that was popped.
func (d *driver) observe(nowNs int64) (behind bool) {
	if d.counts.events.Inc()%spendEvents == 0 {
		d.spend(nowNs) // a program may have events without a pause
	}
	return d.loop.Observe(&d.event, nowNs)
}

// spendEvents is after how many events at the latest the budget is told what they took.
const spendEvents = 64

// spend tells the budget, if there is a limit, what processor time the thread has used since the last time.
func (d *driver) spend(nowNs int64) (usedNs int64) {
	if d.loop.Budget.Share() == 0 {
		return 0
	}
	usedNs = d.usedNs()
	d.loop.Budget.Spend(usedNs, nowNs)
	return usedNs
}

// publish makes the counters of the Decider, its Budget and the Loop those of Stats.
func (d *driver) publish(nowNs int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cost = d.opt.Decider.Cost()
	d.late, d.held, d.putOff = d.opt.Decider.Late(), d.loop.Budget.Counts(nowNs), d.loop.PutOff()
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
