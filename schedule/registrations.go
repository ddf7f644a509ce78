package schedule

import (
	"cmp"
	"math"
	"slices"

	"pinwheel/mem"
)

// registrationQueue is RQ: the deregistered regions, ordered by the time at which they must be registered again. A job
// has a few of them on a rank, so a plan looks at all that may matter.
type registrationQueue struct {
	deadlines
	plan     plan
	short    plan // with several workers: of what the helper does by itself
	planned  bool
	urgentNs int64 // registrations that are due until then follow each other without a pause

	items   []item // scratch
	workers []lane // scratch
}

// put sets when a region must be registered.
func (q *registrationQueue) put(r *region, dueNs int64) {
	q.planned = false
	q.deadlines.put(r, dueNs)
}

func (q *registrationQueue) remove(r *region) {
	if q.deadlines.remove(r) {
		q.planned = false
	}
}

// item is a registration in a plan for several workers.
type item struct {
	r             *region
	dueNs, costNs int64
}

// lane is what a plan knows of a worker.
type lane struct {
	freeNs     int64 // when it can begin
	busyFromNs int64 // with what is planned so far
}

// plan says when to begin with a queue, and with which region.
type plan struct {
	startNs int64 // the latest start with which every deadline is met
	dueNs   int64 // the deadline that sets it
	region  *region
	any     bool
}

func newRegistrationQueue() registrationQueue {
	return registrationQueue{deadlines: deadlines{of: inDue}}
}

// nextStart is the next registration of a queue.
type nextStart struct {
	region  *region
	dueNs   int64 // when it must be done
	startNs int64 // when to begin: never if the queue is empty, now or earlier if it is time
}

// planning is what a plan depends on besides the queue.
type planning struct {
	register *estimate
	itemNs   int64 // each registration costs so much more
	slackNs  int64 // is kept free before every deadline
	// deregister is the time of the deregistration that may come before each registration; nil: none does.
	deregister *estimate
	workers    int // that are there
	underWay   []underWay

	concurrent bool // SchedulerOptions.Concurrent
}

// leastAsideNs is the shortest registration that is worth waking a worker for, and the helper when it is done.
const leastAsideNs = 10 * WakeupNs // 100 us

// costNs is the time of registering this many pages, overhead included.
func (p *planning) costNs(pages uint64) int64 {
	ns := p.workNs(work{pages, 1})
	if p.isLong(pages) {
		ns += WakeupNs
	}
	return ns
}

// workNs is what registrations take, one after the other, by one worker.
func (p *planning) workNs(w work) int64 {
	ns := p.register.sum(w.pages, w.n) + int64(w.n)*p.itemNs
	if p.deregister != nil {
		ns += p.deregister.sum(w.pages, w.n)
	}
	return ns
}

// exceeds reports whether registrations take longer than a time, one after the other, at a scale.
func (p *planning) exceeds(w work, scale float64, ns int64) bool {
	workNs := p.register.model(w.pages, w.n) * scale
	if p.deregister != nil {
		workNs += float64(p.deregister.sum(w.pages, w.n))
	}
	return workNs > float64(ns-int64(w.n)*p.itemNs)
}

// scaleSteps is how many scales between 0 and 1 are told apart. A smaller difference is a rounding error. It would let
// the later of two equal entries win.
const scaleSteps = 1 << 30

// scale is the scale of the estimate, rounded.
func (p *planning) scale() float64 { return math.Round(p.register.scale()*scaleSteps) / scaleSteps }

// isLong reports whether a registration of this many pages is for a worker.
func (p *planning) isLong(pages uint64) bool {
	if p.workers <= 1 || p.concurrent {
		return p.workers > 1
	}
	return p.register.model(pages, 1)*p.scale() >= leastAsideNs
}

// underWay is a registration that one of the workers does.
type underWay struct {
	region mem.RegionID
	endNs  int64 // when it is likely to be done
}

// next returns the next registration and when to begin with it.
//
// It begins at the latest moment that still makes everything ready in time.
// This is the deadline adjustment of Li et al., CF'11, section 3.2 (neighbours in RQ
// lie at least the cost of one RQ item plus one DQ item apart), computed when
// it is needed rather than written into the queue: a region that leaves the
// queue takes its share with it.
func (q *registrationQueue) next(nowNs int64, by *planning) nextStart {
	first, dueNs := q.first()
	switch {
	case first == nil:
		return nextStart{startNs: Never}
	case by.workers > 1:
		return q.nextOfSeveral(by)
	case dueNs <= q.urgentNs:
		return nextStart{first, dueNs, nowNs}
	}
	q.replan(by)
	if nowNs >= q.plan.startNs {
		q.urgentNs = q.plan.dueNs
	}
	return nextStart{first, dueNs, q.plan.startNs}
}

// nextOfSeveral is next for several workers: the registration that must begin first, which may be due after others. As
// long as all workers are busy, it is one that the helper does by itself.
func (q *registrationQueue) nextOfSeveral(by *planning) nextStart {
	q.replan(by)
	p := q.plan
	if len(by.underWay) >= by.workers {
		p = q.short
	}
	if !p.any {
		return nextStart{startNs: Never}
	}
	return nextStart{p.region, p.dueNs, p.startNs}
}

// replan computes the plan again if the queue has changed.
func (q *registrationQueue) replan(by *planning) {
	if q.planned {
		return
	}
	if by.workers > 1 {
		q.plan, q.short = q.latestStartOfSeveral(by)
	} else {
		q.plan = q.latestStart(by)
	}
	q.planned = true
}

// latestStart is the plan for what the helper does by itself: one registration after the other.
func (q *registrationQueue) latestStart(by *planning) (p plan) {
	if by.workers > 1 && by.concurrent {
		return plan{} // nothing
	}
	allNs, scale := by.workNs(q.all)+2, by.scale() // + 2: sums of rounded durations
	var busyNs int64                               // with all so far
	var own, until work                            // so far; up to the deadline that sets the start
	for _, d := range q.some() {
		endNs := d.ns - by.slackNs
		if p.any && endNs-allNs >= p.startNs {
			break // nothing from here on can make it earlier
		}
		if by.isLong(d.pages) {
			continue
		}
		busyNs += by.workNs(work{d.pages, 1})
		own = own.plus(work{d.pages, 1})
		if !p.any || by.exceeds(own.minus(until), scale, d.ns-p.dueNs) {
			first := cmp.Or(p.region, d.r)
			p, until = plan{endNs - busyNs, d.ns, first, true}, own
		}
	}
	return p
}

// latestStartOfSeveral is the plan for several workers. It begins with the latest deadline, and gives each long
// registration to the worker that can begin with it at the latest moment; short ones are the helper's own.
func (q *registrationQueue) latestStartOfSeveral(by *planning) (all, short plan) {
	short = q.latestStart(by)
	firstNs := int64(Never)
	if short.any {
		short.dueNs, _ = q.get(short.region)
		firstNs = short.startNs + leastAsideNs + 1
	}
	q.items = q.items[:0]
	allNs := by.workNs(q.all) + int64(q.all.n)*(WakeupNs+1) // for all of them, one after the other
	for _, d := range q.some() {
		endNs := d.ns - by.slackNs
		if endNs-allNs >= firstNs {
			break // nothing from here on can make it earlier
		}
		if by.isLong(d.pages) {
			costNs := by.costNs(d.pages)
			firstNs = min(firstNs, endNs-costNs)
			q.items = append(q.items, item{d.r, d.ns, costNs})
		}
	}
	q.workers = q.workers[:0]
	for i := range by.workers {
		w := lane{busyFromNs: Never}
		if i < len(by.underWay) {
			w.freeNs = by.underWay[i].endNs
		}
		q.workers = append(q.workers, w)
	}
	var long plan
	for _, it := range slices.Backward(q.items) {
		endNs := it.dueNs - by.slackNs
		w := latest(q.workers, endNs, it.costNs)
		w.busyFromNs = min(endNs, w.busyFromNs) - it.costNs
		if !long.any || w.busyFromNs <= long.startNs {
			long = plan{w.busyFromNs, it.dueNs, it.r, true}
		}
	}
	if !long.any || short.any && short.startNs+leastAsideNs < long.startNs {
		return short, short
	}
	if short.any { // in time to hand the long one over first
		long.startNs = min(long.startNs, short.startNs)
	}
	return long, short
}

// latest returns the worker that can begin at the latest moment with a registration that is to end at endNs, and of
// several the one that is free last: the others can do more.
func latest(workers []lane, endNs, costNs int64) *lane {
	best, bestNs, fits := &workers[0], int64(math.MinInt64), false
	for i := range workers {
		w := &workers[i]
		startNs := min(endNs, w.busyFromNs) - costNs
		inTime := startNs >= w.freeNs
		if inTime && !fits || inTime == fits && (startNs > bestNs || startNs == bestNs && w.freeNs > best.freeNs) {
			best, bestNs, fits = w, startNs, inTime
		}
	}
	return best
}
