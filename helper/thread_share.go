package helper

// What a driver does for a helper that shares its processor: it tells the Decider what the thread has used, and follows
// how long the thread waits for the processor.

// shared is how long a helper runs on the processor of its rank, and what it uses of it.
type shared struct {
	on        bool
	fromNs    int64
	ns, cpuNs int64 // until fromNs
}

// until brings it to a time.
func (s *shared) until(nowNs int64) {
	if s.on {
		s.ns += nowNs - s.fromNs
	}
	s.fromNs = nowNs
}

// share begins with the limits of another placement.
func (d *driver) share(p *Placement) {
	nowNs := d.opt.Clock.NowNs()
	d.spend(nowNs)
	d.usedNs() // on a processor of its own it was not asked for
	d.shared.until(nowNs)
	d.shared.on = p.Shared
	d.loop.SetShared(p.Shared, p.Helpers, nowNs)
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

// spendEvents is after how many events at the latest the Decider is told what they took.
const spendEvents = 64

// spend tells the Decider what processor time the thread has used since the last time, if it is its rank's.
func (d *driver) spend(nowNs int64) (usedNs int64) {
	if !d.shared.on {
		return 0
	}
	usedNs = d.usedNs()
	d.shared.cpuNs += usedNs
	d.opt.Decider.Spend(usedNs, nowNs)
	return usedNs
}

// publish makes what is known now that of Stats.
func (d *driver) publish(nowNs int64) {
	d.shared.until(nowNs)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cost = d.opt.Decider.Cost()
	d.late, d.Thread.shared = d.opt.Decider.Late(), d.shared
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
