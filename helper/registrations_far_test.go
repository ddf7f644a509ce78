package helper

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// Plans, deadlines and sums are those of a queue that has everything in its tree.
func TestWhatIsFarDoesNotChangePlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newEstimate(verbs.Cost{PerPageNs: 100, FixedNs: 1000})
		by := &planning{register: &e, itemNs: us, slackNs: us, workers: 1}
		q, near := newRegistrationQueue(), newRegistrationQueue()
		const most = 200
		regions, models := newRegions(most), newRegions(most)
		nowNs := rapid.SampledFrom([]int64{-1 << 61, -3 * ms, 0, 1 << 44, never - 10_000*ms}).Draw(t, "begin")
		ids := rapid.Map(rapid.IntRange(1, most), func(v int) mem.RegionID { return mem.RegionID(v) })
		laterNs := rapid.OneOf(rapid.Int64Range(-ms, 20*ms), rapid.Int64Range(0, 100_000*ms),
			rapid.SampledFrom([]int64{0, 1 << 20, 1 << 38, 1 << 61, 1 << 62}))
		put := func(id mem.RegionID, dueNs int64, pages uint64) {
			regions[id].pages, models[id].pages = pages, pages
			q.put(regions[id], dueNs)
			near.nearNs = never
			near.put(models[id], dueNs)
		}
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				put(ids.Draw(t, "id"), after(nowNs, laterNs.Draw(t, "later")), rapid.Uint64Range(1, 3000).Draw(t, "pages"))
			},
			"put many": func(t *rapid.T) {
				first, everyNs := laterNs.Draw(t, "first"), rapid.SampledFrom([]int64{0, 10 * us, ms, 60 * ms}).Draw(t, "every")
				for i := range int64(100) {
					put(mem.RegionID(i+1), after(after(nowNs, first), i*everyNs), 1)
				}
			},
			"remove": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				q.remove(regions[id])
				near.remove(models[id])
			},
			"remove many": func(t *rapid.T) {
				for id := range ids.Draw(t, "up to") {
					q.remove(regions[id])
					near.remove(models[id])
				}
			},
			"resize": func(t *rapid.T) { regions[ids.Draw(t, "id")].pages = 7 }, // counts from the next put on
			"scale":  func(t *rapid.T) { e.mean = float64(rapid.IntRange(1, 24).Draw(t, "eighths")) / 8 },
			"workers": func(t *rapid.T) {
				by.workers, q.planned, near.planned = rapid.IntRange(1, 3).Draw(t, "workers"), false, false
				by.underWay = make([]underWay, rapid.IntRange(0, by.workers).Draw(t, "busy"))
			},
			"time": func(t *rapid.T) {
				nowNs = after(nowNs, rapid.Int64Range(0, 200*ms).Draw(t, "passes"))
				serveUntil(t, &q, &near, by, nowNs)
			},
			"": func(t *rapid.T) {
				if q.all() != near.tree.all {
					t.Fatalf("%+v in all, want %+v", q.all(), near.tree.all)
				}
				probe := ids.Draw(t, "probe")
				gotNs, got := q.deadline(regions[probe])
				if wantNs, want := near.deadline(models[probe]); got != want || gotNs != wantNs {
					t.Fatalf("%d is due at %d %t, want %d %t", probe, gotNs, got, wantNs, want)
				}
				fromNs := after(nowNs, laterNs.Draw(t, "from"))
				toNs := after(fromNs, laterNs.Draw(t, "to"))
				ids, wantIDs := idsOf(q.appendBetween(nil, fromNs, toNs)), idsOf(near.appendBetween(nil, fromNs, toNs))
				if !slices.Equal(ids, wantIDs) {
					t.Fatalf("from %d to %d: %v, want %v", fromNs, toNs, ids, wantIDs)
				}
				samePlan(t, &q, &near, by, nowNs)
			},
		})
	})
}

// after returns a time so much later, at most never.
func after(ns, byNs int64) int64 {
	if byNs > 0 && ns > never-byNs {
		return never
	}
	return ns + byNs
}

// serveUntil registers what is to begin until a time.
func serveUntil(t *rapid.T, q, near *registrationQueue, by *planning, untilNs int64) {
	for {
		r, model, startNs := samePlan(t, q, near, by, untilNs)
		if startNs > untilNs {
			return
		}
		q.remove(r)
		near.remove(model)
	}
}

func samePlan(t *rapid.T, q, near *registrationQueue, by *planning, nowNs int64) (r, model *region, startNs int64) {
	got, want := q.next(nowNs, by), near.next(nowNs, by)
	if (got.region == nil) != (want.region == nil) || got.region != nil && got.region.id != want.region.id ||
		got.dueNs != want.dueNs || got.startNs != want.startNs {
		t.Fatalf("%+v, want %+v of %d", got, want, near.tree.all.n)
	}
	return got.region, want.region, got.startNs
}

func idsOf(regions []*region) (ids []mem.RegionID) {
	for _, r := range regions {
		ids = append(ids, r.id)
	}
	slices.Sort(ids)
	return ids
}

// Of many regions that are due one after the other, the tree has few, however late they come and go.
func TestTreeHasOnlyWhatIsNear(t *testing.T) {
	const regions, everyNs = 10_000, ms
	e := newEstimate(verbs.Cost{FixedNs: 1000})
	by := &planning{register: &e, itemNs: us, workers: 1}
	q := newRegistrationQueue()
	for id := range mem.RegionID(regions) {
		q.put(&region{id: id + 1, pages: 1}, int64(id+1)*everyNs)
	}
	cycle := func() {
		next := q.next(0, by)
		q.put(next.region, next.dueNs+regions*everyNs)
	}
	for range 3 * regions {
		if cycle(); q.tree.all.n > 200 {
			t.Fatalf("%d of %d regions are in the tree", q.tree.all.n, regions)
		}
	}
	if q.all().n != regions {
		t.Fatalf("%d regions, want %d", q.all().n, regions)
	}
	if n := testing.AllocsPerRun(2*regions, cycle); n > 0 {
		t.Errorf("a cycle allocates %v times", n)
	}
}

// Several workers have everything in the tree. When they are gone, what is queued anew is not.
func TestTreeOfOneWorkerAfterSeveral(t *testing.T) {
	e := newEstimate(verbs.Cost{FixedNs: 1000})
	q := newRegistrationQueue()
	regions := newRegions(100)
	for _, workers := range []int{2, 1} {
		by := &planning{register: &e, itemNs: us, workers: workers}
		for i, r := range regions[1:] {
			q.put(r, int64(i)*1000*ms)
		}
		q.next(0, by)
		if all := q.tree.all.n == len(regions)-1; all != (workers > 1) {
			t.Errorf("%d workers: %d of %d regions are in the tree", workers, q.tree.all.n, len(regions)-1)
		}
		for _, r := range regions[1:] {
			q.remove(r)
		}
		q.next(0, by)
	}
}
