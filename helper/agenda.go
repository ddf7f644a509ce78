package helper

import (
	"pinwheel/mem"
	"pinwheel/queue"
)

// agenda is RQ: the deregistered regions by when they must be ready again,
// with what it takes to make them so.
type agenda struct {
	deadlines  *queue.Deadlines
	pages      map[mem.RegionID]uint64
	totalPages uint64
	plan       plan
	planned    bool
	urgentNs   int64 // what is due until then is worked off without a pause
}

// plan says when to begin with an agenda.
type plan struct {
	startNs    int64 // the latest start with which every deadline is met
	criticalNs int64 // the deadline that sets it
	any        bool
}

func newAgenda() agenda {
	return agenda{deadlines: queue.NewDeadlines(), pages: make(map[mem.RegionID]uint64)}
}

// put sets when a region of so many pages must be ready.
func (a *agenda) put(id mem.RegionID, pages uint64, dueNs int64) {
	a.deadlines.Put(id, dueNs)
	a.totalPages += pages - a.pages[id]
	a.pages[id] = pages
	a.planned = false
}

func (a *agenda) remove(id mem.RegionID) {
	if a.deadlines.Remove(id) {
		a.totalPages -= a.pages[id]
		delete(a.pages, id)
		a.planned = false
	}
}

// next returns the region to register at nowNs, if it is time for one, else
// until when there is time; any is false for an empty agenda. An item costs
// its registration and itemNs; slackNs is kept free before every deadline.
//
// It begins at the latest moment that still makes everything ready in time.
// This is the deadline adjustment of Li et al., CF'11, section 3.2 (neighbours in RQ
// lie at least the cost of one RQ item plus one DQ item apart), computed when
// it is needed rather than written into the queue: a region that leaves the
// queue takes its share with it.
func (a *agenda) next(nowNs int64, register *estimate, itemNs, slackNs int64) (id mem.RegionID, now bool, untilNs int64, any bool) {
	id, dueNs, any := a.deadlines.First()
	if !any {
		return 0, false, 0, false
	}
	if dueNs <= a.urgentNs {
		return id, true, nowNs, true
	}
	if !a.planned {
		a.plan, a.planned = a.latestStart(register, itemNs, slackNs), true
	}
	if nowNs >= a.plan.startNs {
		a.urgentNs = a.plan.criticalNs
		return id, true, nowNs, true
	}
	return 0, false, a.plan.startNs, true
}

func (a *agenda) latestStart(register *estimate, itemNs, slackNs int64) (p plan) {
	n := a.deadlines.Len()
	allNs := register.sum(a.totalPages, n) + int64(n)*(itemNs+1) // + 1: sums of rounded durations
	var busyNs int64
	for id, dueNs := range a.deadlines.Ascend() {
		if p.any && dueNs-allNs-slackNs >= p.startNs {
			break // nothing from here on can make it earlier
		}
		busyNs += register.ns(a.pages[id]) + itemNs
		if startNs := dueNs - busyNs - slackNs; !p.any || startNs < p.startNs {
			p = plan{startNs, dueNs, true}
		}
	}
	return p
}
