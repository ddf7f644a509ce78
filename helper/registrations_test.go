package helper

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// started is when a registration began, and on how many pages.
type started struct {
	region  mem.RegionID
	startNs int64
	endNs   int64
}

// serve registers all that is due in time, by the estimated costs: what is long with so many workers.
func serve(q *registrationQueue, workers int, costs verbs.Cost) (all []started) {
	e := newEstimate(costs)
	by := &planning{register: &e, workers: workers}
	for nowNs := int64(0); ; {
		next := q.next(nowNs, by)
		if next.startNs <= nowNs {
			pages := q.tree.get(next.region).pages
			endNs := nowNs + by.costNs(pages)
			all = append(all, started{next.region.id, nowNs, endNs})
			if by.isLong(pages) {
				by.underWay = append(by.underWay, underWay{next.region.id, endNs})
			} else {
				nowNs = endNs
			}
			q.remove(next.region)
		} else {
			nowNs = next.startNs
			for _, u := range by.underWay {
				nowNs = min(nowNs, u.endNs)
			}
		}
		if nowNs == never {
			return all
		}
		n := len(by.underWay)
		by.underWay = slices.DeleteFunc(by.underWay, func(u underWay) bool { return u.endNs <= nowNs })
		q.planned = q.planned && len(by.underWay) == n
	}
}

func TestWorkersBeginAtTheLatestMoment(t *testing.T) {
	const cost = 990*us + WakeupNs
	for workers, wantNs := range map[int]int64{2: 3 * cost, 4: 2 * cost, 6: cost, 8: cost} {
		q := newRegistrationQueue()
		for id := range mem.RegionID(6) {
			q.put(&region{id: id, pages: 990}, 100*cost)
		}
		all := serve(&q, workers, verbs.Cost{PerPageNs: 1000})
		if first, last := all[0], all[len(all)-1]; len(all) != 6 || first.startNs != 100*cost-wantNs || last.endNs != 100*cost {
			t.Errorf("%d workers: %d regions, from %d before the deadline to %d after it", workers, len(all),
				100*cost-first.startNs, last.endNs-100*cost)
		}
	}
}

func TestLargeRegionDoesNotHurrySmallOnes(t *testing.T) {
	q := newRegistrationQueue()
	q.put(&region{id: 1, pages: 10}, 1000*us)
	q.put(&region{id: 2, pages: 790}, 1100*us)
	want := []started{{2, 300 * us, 1100 * us}, {1, 990 * us, 1000 * us}}
	if all := serve(&q, 2, verbs.Cost{PerPageNs: 1000}); !slices.Equal(all, want) {
		t.Errorf("began %v, want %v", all, want)
	}
}

// A worker that is busy beyond a deadline is none for it, however free it is afterwards.
func TestBusyWorkerIsNotPlannedBeforeItIsFree(t *testing.T) {
	e := newEstimate(verbs.Cost{PerPageNs: 1000})
	q := newRegistrationQueue()
	q.put(&region{id: 1, pages: 200}, 411*us)
	q.put(&region{id: 2, pages: 200}, 421*us)
	p := &planning{register: &e, workers: 2, underWay: []underWay{{3, 900 * us}}}
	const costNs = 200*us + WakeupNs
	if next := q.next(0, p); next.region.id != 1 || next.startNs != 421*us-2*costNs {
		t.Errorf("begins with %d at %d, want 1 at %d: one worker has both", next.region.id, next.startNs, 421*us-2*costNs)
	}
}

// What waits for another computer takes nobody's time, however short it is and long what is around it.
func TestConcurrentRegistrationsBeginTogether(t *testing.T) {
	e := newEstimate(verbs.Cost{FixedNs: float64(30 * us)})
	const workers, itemNs, dueNs = 64, 10 * leastAsideNs, 1000 * ms
	for concurrent, wantNs := range map[bool]int64{
		true: dueNs - (30*us + WakeupNs + itemNs), false: dueNs - workers*(30*us+itemNs),
	} {
		q := newRegistrationQueue()
		for id := range mem.RegionID(workers) {
			q.put(&region{id: id + 1, pages: 1}, dueNs)
		}
		by := &planning{register: &e, itemNs: itemNs, workers: workers, concurrent: concurrent}
		if next := q.next(0, by); next.startNs != wantNs {
			t.Errorf("concurrent %t: the first begins %d us before it is due, want %d", concurrent, (dueNs-next.startNs)/us, (dueNs-wantNs)/us)
		}
	}
}

// Whatever can be in time with the plan of the beginning is in time.
func TestPlanIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := verbs.Cost{PerPageNs: 1000}
		e := newEstimate(costs)
		q := newRegistrationQueue()
		due := map[mem.RegionID]int64{}
		for id := range mem.RegionID(rapid.IntRange(1, 12).Draw(t, "regions")) {
			due[id] = us * rapid.Int64Range(1, 2000).Draw(t, "due")
			q.put(&region{id: id, pages: rapid.Uint64Range(1, 500).Draw(t, "pages")}, due[id])
		}
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		if q.next(0, &planning{register: &e, workers: workers}).startNs < 0 {
			return
		}
		all := serve(&q, workers, costs)
		if len(all) != len(due) {
			t.Fatalf("%d of %d regions were registered", len(all), len(due))
		}
		for _, s := range all {
			if s.endNs > due[s.region] {
				t.Fatalf("region %d was due at %d: %v", s.region, due[s.region], all)
			}
		}
	})
}
