package report

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"pinwheel/internal/chart"
	"pinwheel/lab/replay"
)

const tasksPerNode = 4

// grouping is a way to place ranks on nodes.
type grouping struct {
	name     string
	nodes    [][]int
	run      *Run
	budgeted *Run // pinwheel within the oracle's peak
}

// groupings are the two tests of the paper's section 6.3, where tasks were
// grouped at random: here once in order of rank, and once shuffled (always
// in the same way).
func groupings(ranks int) []*grouping {
	shuffled := rand.New(rand.NewPCG(2011, 12)).Perm(ranks)
	inOrder := slices.Sorted(slices.Values(shuffled))
	nodes := func(order []int) [][]int { return slices.Collect(slices.Chunk(order, tasksPerNode)) }
	return []*grouping{{name: "in order of rank", nodes: nodes(inOrder)}, {name: "shuffled", nodes: nodes(shuffled)}}
}

// aggregationFigure draws what the ranks of one node pin together, for every
// grouping, and leaves the runs in the groupings.
func aggregationFigure(ctx context.Context, path string, ranks int, costs *Costs) (*chart.Figure, []*grouping, error) {
	gs := groupings(ranks)
	fig := &chart.Figure{Columns: 2}
	for i, g := range gs {
		o := costs.options(ChartPolicies()...)
		o.Nodes = g.nodes
		r, err := replayFile(ctx, path, o)
		if err != nil {
			return nil, nil, err
		}
		g.run = r
		if g.budgeted, err = budgetRun(ctx, path, r); err != nil {
			return nil, nil, err
		}
		p := chart.Panel{Title: fmt.Sprintf("test %d: %s, node 0", i+1, g.name), XLabel: "time (s)", YLabel: "pinned by the node (MiB)", XUnit: 1e9, YUnit: mib}
		for _, policy := range ChartPolicies() {
			s := look(policy)
			s.Step, s.Fill = true, policy == replay.Pinwheel
			s.X, s.Y = peaks(&r.node(policy, 0).Pinned)
			p.Series = append(p.Series, s)
		}
		fig.Panels = append(fig.Panels, p)
		fig.Title = fmt.Sprintf("Task aggregation: %s, %d tasks a node", r.program, tasksPerNode)
		fig.Subtitle = "messages within a node need no registration; registration costs of " + costs.Name
	}
	return fig, gs, nil
}

// nodePeaks is the sum of what each node pins at its worst, and the greatest.
func nodePeaks(r *Run, policy string) (sum, most int64) {
	for i := range r.options.Nodes {
		p := r.node(policy, i).PeakPinnedBytes
		sum, most = sum+p, max(most, p)
	}
	return sum, most
}
