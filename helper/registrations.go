package helper

import (
	"slices"

	"pinwheel/mem"
	"pinwheel/queue"
)

// registrationQueue is RQ: the deregistered regions by when they must be
// registered again, with what it takes to register them.
type registrationQueue struct {
	deadlines  *queue.Deadlines
	pages      map[mem.RegionID]uint64
	totalPages uint64
	plan       plan
	planned    bool
	urgentNs   int64 // registrations that are due until then follow each other without a pause
	workers    []int64
}

// plan says when to begin with a queue, and with which region.
type plan struct {
	startNs    int64 // the latest start with which every deadline is met
	criticalNs int64 // the deadline that sets it
	critical   mem.RegionID
	queued     bool // the critical registration follows others on its worker
	any        bool
}

func newRegistrationQueue() registrationQueue {
	return registrationQueue{deadlines: queue.NewDeadlines(), pages: make(map[mem.RegionID]uint64)}
}

// put sets when a region of so many pages must be registered.
func (q *registrationQueue) put(id mem.RegionID, pages uint64, dueNs int64) {
	q.deadlines.Put(id, dueNs)
	q.totalPages += pages - q.pages[id]
	q.pages[id] = pages
	q.planned = false
}

func (q *registrationQueue) remove(id mem.RegionID) {
	if q.deadlines.Remove(id) {
		q.totalPages -= q.pages[id]
		delete(q.pages, id)
		q.planned = false
	}
}

// nextStart is the next registration of a queue.
type nextStart struct {
	region  mem.RegionID
	dueNs   int64 // when it must be done
	startNs int64 // when to begin: never if the queue is empty, now or earlier if it is time
}

// planning is what a plan depends on besides the queue.
type planning struct {
	register *estimate
	itemNs   int64 // each registration costs so much more
	slackNs  int64 // is kept free before every deadline
	workers  int   // that are there
	underWay []underWay
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
func (q *registrationQueue) next(nowNs int64, p *planning) nextStart {
	id, dueNs, any := q.deadlines.First()
	switch {
	case !any || len(p.underWay) >= p.workers:
		return nextStart{startNs: never}
	case dueNs <= q.urgentNs:
		return nextStart{id, dueNs, nowNs}
	case !q.planned:
		q.plan, q.planned = q.latestStart(nowNs, p), true
	}
	switch {
	case nowNs < q.plan.startNs:
	case q.plan.queued || q.plan.critical == id:
		q.urgentNs = q.plan.criticalNs
	default: // it has a worker of its own, so those that are due before it may still wait
		id, dueNs = q.plan.critical, q.plan.criticalNs
	}
	return nextStart{id, dueNs, q.plan.startNs}
}

// latestStart lets every worker that gets free begin with the earliest deadline that is left.
func (q *registrationQueue) latestStart(nowNs int64, by *planning) (p plan) {
	q.workers = slices.Grow(q.workers[:0], by.workers)[:by.workers] // how long each is busy from the start on
	clear(q.workers)
	n := q.deadlines.Len()
	allNs := by.register.sum(q.totalPages, n) + int64(n)*(by.itemNs+1) // + 1: sums of rounded durations
	for i, w := range by.underWay {
		q.workers[i] = max(0, w.endNs-nowNs)
		allNs += q.workers[i]
	}
	for id, dueNs := range q.deadlines.Ascend() {
		if p.any && dueNs-allNs-by.slackNs >= p.startNs {
			break // nothing from here on can make it earlier
		}
		worker := leastBusy(q.workers)
		queued := *worker > 0
		*worker += by.register.ns(q.pages[id]) + by.itemNs
		if startNs := dueNs - *worker - by.slackNs; !p.any || startNs < p.startNs {
			p = plan{startNs, dueNs, id, queued, true}
		}
	}
	return p
}

func leastBusy(workers []int64) *int64 {
	least := &workers[0]
	for i := range workers {
		if workers[i] < *least {
			least = &workers[i]
		}
	}
	return least
}
