package helper

import (
	"cmp"
	"errors"
	"slices"

	"pinwheel/internal/fault"
	"pinwheel/schedule"
)

// timedActs: one action in so many is timed. The two system calls take as long as a short action.
const timedActs = 8

// maxBatch bounds how long a region waits, closed, for the deregistrations before its own.
const maxBatch = 16

// backoff makes the pauses after failures of one kind of action longer and longer. One
// kind does not hold up the other: a registration that is due does not wait because the
// device refuses to deregister.
type backoff struct {
	failures int   // since the last action that did not fail
	retryNs  int64 // no action of the kind before this
}

// minBackoffNs and maxBackoffNs bound those pauses.
const (
	minBackoffNs = 50_000     // 50 us
	maxBackoffNs = 10_000_000 // 10 ms
)

// failuresBeforeBackoff is how many failures in a row the helper takes for single ones.
const failuresBeforeBackoff = 8

// failed notes a failure. Without pauses the Decider's wishes would become a busy
// loop of system calls that fail.
func (s *backoff) failed(nowNs int64) {
	s.failures++
	if s.failures > failuresBeforeBackoff {
		s.retryNs = nowNs + min(int64(minBackoffNs)<<min(s.failures-failuresBeforeBackoff, 20), maxBackoffNs)
	}
}

// decide carries out the Decider's next action. If there is none, it returns until
// when to wait.
func (d *driver) decide(nowNs int64) (w schedule.Waiting, acted bool) {
	a, w := d.ask(nowNs)
	if a.Kind == schedule.Deregister && len(d.batch) == 0 && d.putOff(&a, nowNs) {
		return schedule.Waiting{DueNs: d.plannedNs, ReviewNs: d.waits.nextLookNs()}, false
	}
	switch {
	case a.Kind == schedule.Deregister && len(d.batch) == 0 && nowNs >= d.backoff[schedule.Deregister].retryNs:
		d.prepare(a, nowNs)
	case a.Kind == schedule.Deregister:
		d.batch = append(d.batch, a)
	}
	if a.Kind != schedule.Register && len(d.batch) > 0 { // a registration that is due waits for one deregistration at most
		a, d.batch = d.batch[0], d.batch[1:]
	}
	switch {
	case a.Kind == schedule.Idle || a.Kind == schedule.Wait:
	case nowNs < d.backoff[a.Kind].retryNs:
		return d.skip(a, nowNs)
	default:
		d.act(a, nowNs)
		acted = true
	}
	d.skipped = schedule.Action{}
	return w, acted
}

// ask asks the Decider for an action, and notes when it plans the next registration. One that is due soon is asked
// for at once if the rank waits.
func (d *driver) ask(nowNs int64) (schedule.Action, schedule.Waiting) {
	if a := d.begun; a.Kind == schedule.Register {
		d.begun = schedule.Action{}
		return a, schedule.Waiting{}
	}
	a, w := d.pace.Ask(d.opt.Decider, nowNs)
	if w.DueNs > nowNs && w.DueNs < schedule.Never && d.sharesCPU() {
		begins, lookNs := d.waits.bringForward(nowNs, w.DueNs, d.pace.UsualNs(), d.opt.RankWaits)
		if begins {
			d.plannedNs = w.DueNs
			a = d.opt.Decider.Next(w.DueNs)
			return a, a.Waiting(nowNs)
		}
		w.ReviewNs = min(w.ReviewNs, lookNs)
	}
	switch {
	case a.Kind == schedule.Deregister:
		d.plannedNs = cmp.Or(a.DueNs, schedule.Never)
	case a.Kind != schedule.Register && w.DueNs > nowNs:
		d.plannedNs = w.DueNs
		d.waits.nothingLeft(nowNs)
	case a.Kind == schedule.Register && d.plannedNs > nowNs && !d.pace.Near(nowNs, d.plannedNs):
		d.plannedNs = schedule.Never // an event has made it due, and nobody has planned it
	}
	return a, w
}

// putOff leaves a deregistration until the rank waits, if it would take the rank's own processor from it.
func (d *driver) putOff(a *schedule.Action, nowNs int64) bool {
	began := d.waits.untilNs
	if !d.sharesCPU() || !d.waits.putOff(a, nowNs, d.pace.UsualNs(), d.opt.RankWaits()) {
		return false
	}
	if began == 0 {
		d.counts.putOff.Inc()
	}
	d.opt.Decider.Done(*a, nowNs, nowNs, schedule.ErrPutOff)
	return true
}

// sharesCPU reports whether the helper runs where the communication thread ran when it was last heard of. It is asked
// for every deregistration, so a thread that is bound does not ask the kernel where it is.
func (d *driver) sharesCPU() bool {
	cpu, own := d.opt.CommCPU(), d.cpu
	if cpu != AnyCPU && own == AnyCPU {
		own = CurrentCPU()
	}
	return cpu != AnyCPU && cpu == own
}

// prepare has the Registrar prepare what the Decider wants deregistered now: a, and what it names
// after it.
func (d *driver) prepare(a schedule.Action, nowNs int64) {
	d.ids, d.batch = append(d.ids[:0], a.Region), append(d.batch[:0], a)
	for len(d.ids) < maxBatch {
		next := d.opt.Decider.Next(nowNs)
		if next.Kind == schedule.Register {
			d.begun = next
		}
		if next.Kind != schedule.Deregister || slices.Contains(d.ids, next.Region) {
			break
		}
		d.ids, d.batch = append(d.ids, next.Region), append(d.batch, next)
	}
	if len(d.ids) > 1 {
		d.opt.Registrar.Prepare(d.ids)
	}
}

// errSkipped is the outcome of an action that was not tried.
var errSkipped = errors.New("helper: not tried, the last ones failed")

// skip lets an action fail without trying it. To keep it for later would keep
// the Decider from what else it wants, and by then it may be wrong. Only a
// Decider that insists on it is made to wait.
func (d *driver) skip(a schedule.Action, nowNs int64) (w schedule.Waiting, acted bool) {
	d.opt.Decider.Done(a, nowNs, nowNs, errSkipped)
	if a.Kind == d.skipped.Kind && a.Region == d.skipped.Region {
		return schedule.Waiting{DueNs: d.backoff[a.Kind].retryNs, ReviewNs: schedule.Never}, false
	}
	d.skipped = a
	return schedule.Waiting{}, true
}

// act carries out an action, or has a worker do it.
func (d *driver) act(a schedule.Action, nowNs int64) {
	if a.Aside && d.crew.hand(a) {
		d.noteStart(a, nowNs)
		return
	}
	limited := d.budget.Share() > 0 // then each action is timed for the budget
	timed := !limited && d.acts%timedActs == 0
	d.acts++
	d.spend(nowNs)
	cpuNs := int64(0)
	if timed {
		cpuNs = ownCPUNs()
	}
	startNs := d.clock.NowNs()
	d.noteStart(a, startNs)
	err := d.do(&a)
	endNs := d.clock.NowNs()
	if timed {
		d.counts.actionNs.Add(timedActs * (ownCPUNs() - cpuNs))
	}
	if limited {
		usedNs := d.usedNs()
		d.counts.actionNs.Add(usedNs)
		d.budget.Acted(usedNs, endNs)
	}
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

// acted tells the Decider how an action went.
func (d *driver) acted(a schedule.Action, startNs, endNs int64, err error) {
	if f := fault.In(err); f != nil {
		panic(f) // the layers below have contained it, but it ends the helper
	}
	if errors.Is(err, ErrAlready) {
		// An action that took no time says nothing about costs.
		d.opt.Decider.Done(a, startNs, startNs, nil)
		return
	}
	d.opt.Decider.Done(a, startNs, endNs, err)
	if a.Kind == schedule.Register {
		d.waits.registered(endNs - startNs)
	}
	switch {
	case err == nil:
		if a.Kind == schedule.Register {
			d.counts.registers.Inc()
		} else {
			d.counts.deregs.Inc()
		}
		d.backoff[a.Kind] = backoff{}
	case errors.Is(err, ErrGone):
		d.opt.Decider.Forget(a.Region)
	case !errors.Is(err, ErrInUse):
		d.counts.failures.Inc()
		d.backoff[a.Kind].failed(endNs)
	}
}

// noteStart notes when an action begins.
func (d *driver) noteStart(a schedule.Action, startNs int64) {
	starts := &d.counts.starts
	if d.opt.RankWaits() {
		d.counts.inWaits.Inc()
		starts = &d.counts.startsInWaits
	}
	if a.Kind == schedule.Register && d.plannedNs != schedule.Never {
		starts.note(startNs - d.plannedNs)
		d.plannedNs = schedule.Never // those that follow it without a pause have no moment of their own
	}
}
