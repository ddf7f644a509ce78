package schedule

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
)

// newRegions returns regions of one page by their numbers, up to the highest.
func newRegions(highest mem.RegionID) (all []*region) {
	for id := range highest + 1 {
		all = append(all, &region{id: id, pages: 1})
	}
	return all
}

func TestDeadlinesBehaveAsSortedLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		regions := newRegions(200)
		queues := []deadlines{{of: inDue}, {of: inGated}, {of: inReviews}}
		models := []map[mem.RegionID]int64{{}, {}, {}}
		regionIDs := rapid.Uint64Range(1, 200)
		times := rapid.OneOf(rapid.Int64Range(-5, 60), rapid.SampledFrom([]int64{math.MinInt64, Never - 1, Never}))
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				i, id, ns := rapid.IntRange(0, 2).Draw(t, "queue"), mem.RegionID(regionIDs.Draw(t, "id")), times.Draw(t, "ns")
				queues[i].put(regions[id], ns)
				models[i][id] = ns
			},
			"put many": func(t *rapid.T) {
				i, ns := rapid.IntRange(0, 2).Draw(t, "queue"), times.Draw(t, "ns")
				for range rapid.IntRange(0, 70).Draw(t, "n") { // more than a node has
					id := mem.RegionID(regionIDs.Draw(t, "id"))
					queues[i].put(regions[id], ns)
					models[i][id] = ns
				}
			},
			"remove many": func(t *rapid.T) {
				i := rapid.IntRange(0, 2).Draw(t, "queue")
				for range rapid.IntRange(0, 70).Draw(t, "n") {
					r, _ := queues[i].first()
					if r == nil {
						break
					}
					queues[i].remove(r)
					delete(models[i], r.id)
				}
			},
			"remove": func(t *rapid.T) {
				i, id := rapid.IntRange(0, 2).Draw(t, "queue"), mem.RegionID(regionIDs.Draw(t, "id"))
				queues[i].remove(regions[id])
				delete(models[i], id)
			},
			"": func(t *rapid.T) {
				fromNs, toNs := times.Draw(t, "from"), times.Draw(t, "to")
				for i := range queues {
					checkDeadlines(t, &queues[i], models[i], regions, fromNs, toNs)
				}
			},
		})
	})
}

func checkDeadlines(t *rapid.T, q *deadlines, m map[mem.RegionID]int64, regions []*region, fromNs, toNs int64) {
	var first mem.RegionID
	var between []mem.RegionID
	for _, r := range regions {
		ns, ok := q.get(r)
		wantNs, want := m[r.id]
		if ok != want || ns != wantNs {
			t.Fatalf("region %d: %d, %t, want %d, %t", r.id, ns, ok, wantNs, want)
		}
		if ok && (first == 0 || ns < m[first]) {
			first = r.id
		}
		if ok && fromNs <= ns && ns <= toNs {
			between = append(between, r.id)
		}
	}
	if r, ns := q.first(); (r == nil) != (first == 0) || r != nil && (r.id != first || ns != m[first]) || r == nil && ns != Never {
		t.Fatalf("first is %+v at %d, want %d", r, ns, first)
	}
	var got []mem.RegionID
	for _, r := range q.appendBetween(nil, fromNs, toNs) {
		got = append(got, r.id)
	}
	slices.Sort(got)
	if !slices.Equal(got, between) || q.all.n != len(m) {
		t.Fatalf("from %d to %d: %v of %d, want %v of %d", fromNs, toNs, got, q.all.n, between, len(m))
	}
}

func TestMovingADeadlineDoesNotAllocate(t *testing.T) {
	const regions, everyNs = 1000, ms
	q := deadlines{of: inReviews}
	for i, r := range newRegions(regions) {
		q.put(r, int64(i)*everyNs)
	}
	var found []*region
	move := func() {
		r, ns := q.first()
		q.put(r, ns+regions*everyNs)
		found = q.appendBetween(found[:0], ns, ns+2*everyNs)
	}
	for range 2 * regions {
		move()
	}
	if n := testing.AllocsPerRun(2*regions, move); n > 0 {
		t.Errorf("a move allocates %v times", n)
	}
}
