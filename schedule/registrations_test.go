package schedule

import (
	"cmp"
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
			pages := next.region.pages
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
		if nowNs == Never {
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

// dueModel is a queue as a sorted list.
type dueModel []deadline

func (m *dueModel) remove(id mem.RegionID) {
	*m = slices.DeleteFunc(*m, func(d deadline) bool { return d.r.id == id })
}

func (m *dueModel) put(d deadline) {
	m.remove(d.r.id)
	*m = append(*m, d)
	slices.SortFunc(*m, func(a, b deadline) int { return cmp.Or(cmp.Compare(a.ns, b.ns), cmp.Compare(a.r.id, b.r.id)) })
}

// latestStart looks at everything that the helper does by itself.
func (m dueModel) latestStart(by *planning) (p plan) {
	var busyNs int64
	for _, d := range m {
		if by.isLong(d.pages) {
			continue
		}
		busyNs += by.costNs(d.pages)
		if startNs := d.ns - busyNs - by.slackNs; !p.any || startNs < p.startNs {
			p = plan{startNs, d.ns, cmp.Or(p.region, d.r), true}
		}
	}
	return p
}

func TestLatestStartIsThatOfAllThatIsQueued(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, m, regions := newRegistrationQueue(), dueModel{}, newRegions(80)
		// Whole costs and scales in eighths: sums are exact, and ties are real ones.
		page, fixed := rapid.IntRange(0, 1).Draw(t, "page"), rapid.IntRange(0, 2).Draw(t, "fixed")
		e := newEstimate(verbs.Cost{PerPageNs: 8 * float64(page), FixedNs: 8 * float64(fixed)})
		by := &planning{register: &e, itemNs: rapid.Int64Range(0, 3).Draw(t, "item"), slackNs: 5, workers: 1}
		ids := rapid.Map(rapid.Uint64Range(1, 80), func(v uint64) mem.RegionID { return mem.RegionID(v) })
		pages := rapid.OneOf(rapid.Uint64Range(1, 5), rapid.SampledFrom([]uint64{leastAsideNs / 8, leastAsideNs / 16}))
		due := rapid.OneOf(rapid.Int64Range(-30, 400), rapid.Int64Range(-30, 4*leastAsideNs))
		t.Repeat(map[string]func(*rapid.T){
			"workers": func(t *rapid.T) { by.workers = rapid.IntRange(1, 3).Draw(t, "workers") },
			"put": func(t *rapid.T) {
				r := regions[ids.Draw(t, "id")]
				r.pages = pages.Draw(t, "pages")
				d := deadline{due.Draw(t, "due"), r, r.pages}
				q.put(r, d.ns)
				m.put(d)
			},
			"resize": func(t *rapid.T) { regions[ids.Draw(t, "id")].pages = 7 }, // counts from the next put on
			"remove": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				q.remove(regions[id])
				m.remove(id)
			},
			"scale": func(t *rapid.T) { e.mean = float64(rapid.IntRange(0, 24).Draw(t, "eighths")) / 8 },
			"": func(t *rapid.T) {
				if got, want := q.latestStart(by), m.latestStart(by); got != want {
					t.Fatalf("%+v at scale %g, want %+v of %v", got, e.scale(), want, m)
				}
				var all work
				for _, d := range m {
					all = all.plus(work{d.pages, 1})
				}
				if q.all != all {
					t.Fatalf("%+v in all, want %+v", q.all, all)
				}
			},
		})
	})
}

// Two that together take 2.8 ns begin 2.8 ns before the second is due, though each takes 1 ns by itself, rounded.
func TestPlanIsForTheDeadlineThatSetsItToTheFraction(t *testing.T) {
	e := newEstimate(verbs.Cost{PerPageNs: 1.4})
	q := newRegistrationQueue()
	regions := newRegions(2)
	q.put(regions[1], 100)
	q.put(regions[2], 101)
	if p := q.latestStart(&planning{register: &e, workers: 1}); p.dueNs != 101 {
		t.Errorf("the plan is for what is due at %d, want 101", p.dueNs)
	}
}

// A registration is not a worker's because the mean of what was measured is a rounding error from its duration.
func TestRoundingErrorsDoNotDecideWhatIsForAWorker(t *testing.T) {
	for _, scale := range []float64{1 - 1e-10, 1, 1 + 1e-10, 1 - 1e-6} {
		e := newEstimate(verbs.Cost{PerPageNs: 8})
		e.mean = scale
		by := &planning{register: &e, workers: 2}
		if isLong := by.isLong(leastAsideNs / 8); isLong != (scale > 1-1e-9) {
			t.Errorf("scale %.12f: for a worker: %t", scale, isLong)
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
