package helper

import (
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
}

// plan says when to begin with a queue.
type plan struct {
	startNs    int64 // the latest start with which every deadline is met
	criticalNs int64 // the deadline that sets it
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

// next returns the next registration and when to begin with it. An item costs
// its registration and itemNs; slackNs is kept free before every deadline.
//
// It begins at the latest moment that still makes everything ready in time.
// This is the deadline adjustment of Li et al., CF'11, section 3.2 (neighbours in RQ
// lie at least the cost of one RQ item plus one DQ item apart), computed when
// it is needed rather than written into the queue: a region that leaves the
// queue takes its share with it.
func (q *registrationQueue) next(nowNs int64, register *estimate, itemNs, slackNs int64) nextStart {
	id, dueNs, any := q.deadlines.First()
	switch {
	case !any:
		return nextStart{startNs: never}
	case dueNs <= q.urgentNs:
		return nextStart{id, dueNs, nowNs}
	case !q.planned:
		q.plan, q.planned = q.latestStart(register, itemNs, slackNs), true
	}
	if nowNs >= q.plan.startNs {
		q.urgentNs = q.plan.criticalNs
	}
	return nextStart{id, dueNs, q.plan.startNs}
}

func (q *registrationQueue) latestStart(register *estimate, itemNs, slackNs int64) (p plan) {
	n := q.deadlines.Len()
	allNs := register.sum(q.totalPages, n) + int64(n)*(itemNs+1) // + 1: sums of rounded durations
	var busyNs int64
	for id, dueNs := range q.deadlines.Ascend() {
		if p.any && dueNs-allNs-slackNs >= p.startNs {
			break // nothing from here on can make it earlier
		}
		busyNs += register.ns(q.pages[id]) + itemNs
		if startNs := dueNs - busyNs - slackNs; !p.any || startNs < p.startNs {
			p = plan{startNs, dueNs, true}
		}
	}
	return p
}
