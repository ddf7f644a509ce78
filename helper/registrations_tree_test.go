package helper

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// queued is one entry of listModel.
type queued struct {
	id    mem.RegionID
	dueNs int64
	pages uint64
}

// listModel is dueTree as a sorted list.
type listModel []queued

func (m *listModel) remove(id mem.RegionID) bool {
	n := len(*m)
	*m = slices.DeleteFunc(*m, func(e queued) bool { return e.id == id })
	return len(*m) < n
}

func (m *listModel) put(e queued) {
	m.remove(e.id)
	*m = append(*m, e)
	slices.SortFunc(*m, func(a, b queued) int { return cmp.Or(cmp.Compare(a.dueNs, b.dueNs), cmp.Compare(a.id, b.id)) })
}

// divide returns what the helper does by itself, and what is for workers.
func (m listModel) divide(by *planning) (own, long listModel) {
	for _, e := range m {
		if by.isLong(e.pages) {
			long = append(long, e)
		} else {
			own = append(own, e)
		}
	}
	return own, long
}

// latest looks at every entry.
func (m listModel) latest(by *planning) (c critical) {
	var w work
	for i, e := range m {
		w = w.plus(work{e.pages, 1})
		if i == 0 || e.dueNs-by.workNs(w) < c.dueNs-by.workNs(c.work) {
			c = critical{e.dueNs, w}
		}
	}
	return c
}

// newRegions returns regions of one page by their numbers, up to the highest.
func newRegions(highest mem.RegionID) (all []*region) {
	for id := range highest + 1 {
		all = append(all, &region{id: id, pages: 1})
	}
	return all
}

func TestDueTreeBehavesAsSortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree, m, regions := newDueTree(), listModel{}, newRegions(80)
		// Whole costs and scales in eighths: sums are exact, and ties are real ones.
		page, fixed := rapid.IntRange(0, 1).Draw(t, "page"), rapid.IntRange(0, 2).Draw(t, "fixed")
		e := newEstimate(verbs.Cost{PerPageNs: 8 * float64(page), FixedNs: 8 * float64(fixed)})
		by := &planning{register: &e, itemNs: rapid.Int64Range(0, 3).Draw(t, "item")}
		ids := rapid.Map(rapid.Uint64Range(1, 80), func(v uint64) mem.RegionID { return mem.RegionID(v) })
		pages := rapid.OneOf(rapid.Uint64Range(1, 5), rapid.SampledFrom([]uint64{leastAsideNs / 8, leastAsideNs / 16}))
		t.Repeat(map[string]func(*rapid.T){
			"workers": func(t *rapid.T) { by.workers = rapid.IntRange(1, 3).Draw(t, "workers") },
			"put": func(t *rapid.T) {
				e := queued{ids.Draw(t, "id"), rapid.Int64Range(-30, 400).Draw(t, "due"), pages.Draw(t, "pages")}
				regions[e.id].pages = e.pages
				tree.put(regions[e.id], e.dueNs, e.pages)
				m.put(e)
			},
			"remove": func(t *rapid.T) {
				id := ids.Draw(t, "id")
				if got, want := tree.remove(regions[id]), m.remove(id); got != want {
					t.Fatalf("remove(%d) = %v, want %v", id, got, want)
				}
			},
			"scale": func(t *rapid.T) { e.mean = float64(rapid.IntRange(0, 24).Draw(t, "eighths")) / 8 },
			"":      func(t *rapid.T) { checkDueTree(t, &tree, m, by, regions[ids.Draw(t, "probe")]) },
		})
	})
}

func checkDueTree(t *rapid.T, tree *dueTree, m listModel, by *planning, probe *region) {
	var all work
	for _, e := range m {
		all = all.plus(work{e.pages, 1})
	}
	if tree.all != all {
		t.Fatalf("%+v in all, want %+v", tree.all, all)
	}
	for _, fromNs := range []int64{math.MinInt64, 0, 200} {
		got, want := listModel{}, listModel{}
		for n := range tree.from(fromNs) {
			got = append(got, queued{n.id, n.dueNs, n.pages})
		}
		for _, e := range m {
			if e.dueNs >= fromNs {
				want = append(want, e)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("from %d: %v, want %v", fromNs, got, want)
		}
	}
	i := slices.IndexFunc(m, func(e queued) bool { return e.id == probe.id })
	if n := tree.get(probe); (n != nil) != (i >= 0) || n != nil && (queued{n.id, n.dueNs, n.pages}) != m[i] {
		t.Fatalf("get(%d) = %+v in %v", probe.id, n, m)
	}
	if first := tree.first(); (first == nil) != (len(m) == 0) || first != nil && first.id != m[0].id {
		t.Fatalf("first is %+v of %v", first, m)
	}
	own, long := m.divide(by)
	if got, want := tree.latest(by), own.latest(by); got != want {
		t.Fatalf("critical %+v at scale %g, want %+v of %v", got, by.register.scale(), want, own)
	}
	if first := tree.firstOwn(); (first == nil) != (len(own) == 0) || first != nil && first.id != own[0].id {
		t.Fatalf("first by itself is %+v of %v", first, own)
	}
	gotOwn, gotLong := listed(tree.ownOnes()), listed(tree.longOnes())
	if !slices.Equal(gotOwn, own) || !slices.Equal(gotLong, long) || tree.longs().n != len(long) {
		t.Fatalf("by itself %v, want %v; for workers %v, %+v, want %v", gotOwn, own, gotLong, tree.longs(), long)
	}
}

func listed(entries iter.Seq[*dueNode]) (m listModel) {
	for n := range entries {
		m = append(m, queued{n.id, n.dueNs, n.pages})
	}
	return m
}

// The scale is rounded. Whoever asks what is for a worker asks by the rounded one.
func TestWhatIsForAWorkerIsSoForAll(t *testing.T) {
	const pages = leastAsideNs / 8
	for _, scale := range []float64{1 - 1e-10, 1, 1 + 1e-10, 1 - 1e-6} {
		e := newEstimate(verbs.Cost{PerPageNs: 8})
		e.mean = scale
		by := &planning{register: &e, workers: 2}
		tree := newDueTree()
		tree.put(&region{id: 1, pages: pages}, 0, pages)
		tree.latest(by)
		isLong := tree.longs().n == 1
		if isLong != by.isLong(pages) || isLong != (by.costNs(pages) > leastAsideNs) || isLong != (scale > 1-1e-9) {
			t.Errorf("scale %.12f: the tree says %t, the plan %t, at a cost of %d ns", scale, isLong, by.isLong(pages), by.costNs(pages))
		}
	}
}

// A plan for what the helper does by itself looks at no more than that, however much is for workers.
func TestPlanDoesNotWalkThroughWhatIsForWorkers(t *testing.T) {
	const regions = 1000
	e := newEstimate(verbs.Cost{PerPageNs: 1000})
	by := &planning{register: &e, workers: 2}
	q := newRegistrationQueue()
	for id := range mem.RegionID(regions) {
		q.put(&region{id: id + 1, pages: uint64(leastAsideNs / us)}, int64(id))
	}
	own := &region{id: regions + 1, pages: 1} // for the helper itself
	q.put(own, 2*regions)
	q.approach(by)
	q.latestStart(by)
	hidden := 0
	for k := range q.tree.nodes[1:] {
		if n := &q.tree.nodes[k+1]; n.own.n == 0 { // whoever goes on there leaves the tree
			n.left, n.right = math.MaxUint32, math.MaxUint32
			hidden++
		}
	}
	if hidden < regions/2 {
		t.Fatalf("%d subtrees of %d have nothing for the helper", hidden, regions)
	}
	if p := q.latestStart(by); p.region != own || p.startNs != 2*regions-us {
		t.Errorf("%+v", p)
	}
	for n := range q.tree.ownOnes() {
		if n.r != own {
			t.Errorf("region %d is for a worker", n.id)
		}
	}
}

func TestDueTreeIterationStopsWhenAsked(t *testing.T) {
	tree := newDueTree()
	for id := range mem.RegionID(100) {
		tree.put(&region{id: id + 1, pages: 1}, int64(id), 1)
	}
	seen := 0
	for range tree.from(10) {
		if seen++; seen == 3 {
			break
		}
	}
	if seen != 3 {
		t.Errorf("saw %d entries after break, want 3", seen)
	}
}

// manyDue is a tree of regions that are due one after the other, everyNs apart.
func manyDue(regions int, everyNs int64) (t dueTree, by *planning) {
	e := newEstimate(testCosts.Register)
	t = newDueTree()
	for id := range mem.RegionID(regions) {
		t.put(&region{id: id + 1, pages: 1}, int64(id)*everyNs, 1)
	}
	return t, &planning{register: &e, itemNs: us}
}

// move gives the earliest region a later deadline, and asks for the latest start.
func (t *dueTree) move(by *planning, byNs int64) {
	first := t.first()
	t.put(first.r, first.dueNs+byNs, 1)
	t.latest(by)
}

func TestOneMoveRenewsFewSummaries(t *testing.T) {
	const regions = 10_000
	for _, everyNs := range []int64{0, us, 10 * us, ms} { // all at once, too close, close, with pauses
		tree, by := manyDue(regions, everyNs)
		tree.latest(by)
		for i := range 1000 {
			first := tree.first()
			tree.put(first.r, first.dueNs+regions*everyNs, 1)
			by.register.observe(1, testCosts.Register.Ns(1)*int64(90+i%20)/100) // the estimate moves, too
			stale := tree.stale(tree.root, by.register.scale())
			tree.latest(by)
			if stale > 500 {
				t.Fatalf("%d us apart: move %d renews %d of %d summaries", everyNs/us, i, stale, regions)
			}
		}
	}
}

// stale counts the summaries of a subtree that do not hold.
func (t *dueTree) stale(at uint32, scale float64) int {
	n := &t.nodes[at]
	if at == 0 || n.above < scale && scale <= n.upTo {
		return 0
	}
	return 1 + t.stale(n.left, scale) + t.stale(n.right, scale)
}

func TestDueTreeSteadyStateDoesNotAllocate(t *testing.T) {
	tree, by := manyDue(1000, ms)
	if n := testing.AllocsPerRun(2000, func() { tree.move(by, 1000*ms) }); n > 0 {
		t.Errorf("a move allocates %v times", n)
	}
}

// BenchmarkDueTreeMove is one event of a program with so many regions that wait: one is queued anew, and the
// latest start is asked for.
func BenchmarkDueTreeMove(b *testing.B) {
	for _, c := range []struct {
		name    string
		regions int
		everyNs int64
	}{{"100", 100, ms}, {"10000", 10_000, ms}, {"10000-close", 10_000, us}} {
		b.Run(c.name, func(b *testing.B) {
			tree, by := manyDue(c.regions, c.everyNs)
			b.ReportAllocs()
			for b.Loop() {
				tree.move(by, int64(c.regions)*c.everyNs)
			}
		})
	}
}
