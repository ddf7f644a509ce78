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

// serve registers all that is due in time, with so many workers and by the estimated costs.
func serve(q *registrationQueue, workers int, costs verbs.Cost) (all []started) {
	e := newEstimate(costs)
	p := &planning{register: &e, workers: workers}
	for nowNs := int64(0); ; {
		if next := q.next(nowNs, p); next.startNs <= nowNs {
			endNs := nowNs + e.ns(q.pages[next.region])
			all = append(all, started{next.region, nowNs, endNs})
			p.underWay = append(p.underWay, underWay{next.region, endNs})
			q.remove(next.region)
			continue
		} else if nowNs = next.startNs; nowNs == never && len(p.underWay) == 0 {
			return all
		}
		for _, u := range p.underWay {
			nowNs = min(nowNs, u.endNs)
		}
		p.underWay = slices.DeleteFunc(p.underWay, func(u underWay) bool { return u.endNs <= nowNs })
		q.planned = false
	}
}

func TestWorkersBeginAtTheLatestMoment(t *testing.T) {
	const cost = 8192 * 1000
	for workers, wantNs := range map[int]int64{1: 6 * cost, 2: 3 * cost, 4: 2 * cost, 6: cost, 8: cost} {
		q := newRegistrationQueue()
		for id := range mem.RegionID(6) {
			q.put(id, 8192, 100*cost)
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
	q.put(1, 10, 1000)
	q.put(2, 800, 1100)
	want := []started{{2, 300, 1100}, {1, 990, 1000}}
	if all := serve(&q, 2, verbs.Cost{PerPageNs: 1}); !slices.Equal(all, want) {
		t.Errorf("began %v, want %v", all, want)
	}
}

// Whatever can be in time with the plan of the beginning is in time.
func TestPlanIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		costs := verbs.Cost{PerPageNs: 1}
		e := newEstimate(costs)
		q := newRegistrationQueue()
		due := map[mem.RegionID]int64{}
		for id := range mem.RegionID(rapid.IntRange(1, 12).Draw(t, "regions")) {
			due[id] = rapid.Int64Range(1, 300).Draw(t, "due")
			q.put(id, rapid.Uint64Range(1, 100).Draw(t, "pages"), due[id])
		}
		workers := rapid.IntRange(1, 5).Draw(t, "workers")
		if q.latestStart(0, &planning{register: &e, workers: workers}).startNs < 0 {
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
