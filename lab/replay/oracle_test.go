package replay

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/usage"
	"pinwheel/lab/replay/pinned"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// use is one need of a range during [from, to).
type use struct {
	rng      mem.Range
	from, to int64
}

// oracleIntegral drives the oracle through uses and returns byte nanoseconds.
func oracleIntegral(uses []use, costs verbs.Costs) float64 {
	const late = 1000 // more than any registration here takes
	var now int64
	u := usage.New(0, never)
	u.LateNs = late
	p := pinned.NewCounter(&now, nil)
	p.AddUsage(&u)
	o := &oraclePath{costs: costs, pages: p, stats: &Counts{}, lateNs: late, until: map[mem.Range]int64{}}
	type edge struct {
		at   int64
		i    int
		done bool
	}
	var edges []edge
	for i, x := range uses {
		edges = append(edges, edge{x.from, i, false}, edge{x.to, i, true})
	}
	slices.SortStableFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	buffers := make([]bufferUse, len(uses))
	for _, e := range edges {
		for p.NextNs() <= e.at {
			now = p.NextNs()
			p.Apply()
		}
		now = e.at
		if e.done {
			o.release(now, &buffers[e.i])
		} else {
			o.acquire(now, &need{rng: uses[e.i].rng}, &buffers[e.i])
		}
	}
	for p.NextNs() < never {
		now = p.NextNs()
		p.Apply()
	}
	const end = 1 << 40
	return u.Close(end) * end
}

// bestOf tries every way to share registrations among uses: each group of
// uses is served by one registration of the range that covers them, which
// begins in time for the first and is released after the last.
func bestOf(uses []use, costs verbs.Costs) float64 {
	best := -1.0
	group := make([]int, len(uses))
	var try func(i, groups int)
	try = func(i, groups int) {
		if i < len(uses) {
			for g := range groups + 1 {
				group[i] = g
				try(i+1, max(groups, g+1))
			}
			return
		}
		var regs []use
		for g := range groups {
			var r use
			for j, x := range uses {
				if group[j] != g {
					continue
				}
				if r.rng.Empty() {
					r = x
				}
				r = use{r.rng.Union(x.rng), min(r.from, x.from), max(r.to, x.to)}
			}
			r.from -= costs.Register.Ns(r.rng.Pages())
			r.to += costs.Deregister.Ns(r.rng.Pages())
			regs = append(regs, r)
		}
		if n := pinnedIntegral(regs); best < 0 || n < best {
			best = n
		}
	}
	try(0, 0)
	return best
}

// pinnedIntegral adds up, page by page and nanosecond by nanosecond, what is pinned.
func pinnedIntegral(regs []use) (total float64) {
	type cell struct {
		page mem.Addr
		t    int64
	}
	cells := map[cell]bool{}
	for _, r := range regs {
		for page := r.rng.Start; page < r.rng.End; page += mem.Addr(mem.PageSize) {
			for t := max(r.from, 0); t < r.to; t++ {
				cells[cell{page, t}] = true
			}
		}
	}
	return float64(len(cells)) * float64(mem.PageSize)
}

func TestNoSharingOfRegistrationsBeatsTheOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		page := mem.Addr(mem.PageSize)
		uses := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) use {
			first := mem.Addr(rapid.IntRange(0, 3).Draw(t, "page"))
			from := rapid.Int64Range(0, 60).Draw(t, "from")
			return use{
				mem.Range{Start: first * page, End: (first + mem.Addr(rapid.IntRange(1, 3).Draw(t, "pages"))) * page},
				from, from + rapid.Int64Range(1, 20).Draw(t, "length"),
			}
		}), 1, 5).Draw(t, "uses")
		costs := verbs.Costs{
			Register:   verbs.Cost{PerPageNs: float64(rapid.IntRange(0, 4).Draw(t, "a")), FixedNs: float64(rapid.IntRange(0, 8).Draw(t, "b"))},
			Deregister: verbs.Cost{PerPageNs: float64(rapid.IntRange(0, 2).Draw(t, "c")), FixedNs: float64(rapid.IntRange(0, 5).Draw(t, "d"))},
		}
		if got, want := oracleIntegral(uses, costs), bestOf(uses, costs); got != want {
			t.Fatalf("oracle pins %v byte ns, the best of all ways %v", got, want)
		}
	})
}
