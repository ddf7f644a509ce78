package scale

import (
	"context"
	"fmt"
	"slices"

	"pinwheel/lab/replay"
	"pinwheel/mem"
)

// Kind is how a run grows with the number of its ranks.
type Kind string

const (
	// Copies of the recorded run lie side by side. They don't communicate with each other.
	Copies Kind = "copies"
	// Weak lets the problem grow with the ranks: each has as much of it as was recorded.
	Weak Kind = "weak"
	// Strong divides the recorded problem among more ranks.
	Strong Kind = "strong"
)

// Result is one policy on a derived run: the sums over all ranks, and the nodes.
type Result struct {
	replay.Result
	Scaling Kind `json:"scaling"`
	Ranks   int  `json:"ranks"`
	Nodes   int  `json:"nodes"`
	PerNode int  `json:"ranks_per_node"`
	// NodePeakBytes is what the node that pins most pins at one time. The means are over all nodes.
	NodePeakBytes     int64   `json:"node_peak_pinned_bytes"`
	NodeMeanPeakBytes float64 `json:"node_mean_peak_pinned_bytes"`
	NodeAvgBytes      float64 `json:"node_avg_pinned_bytes"`
	// BudgetBytes is the most that policy lru and those with a helper might pin on a rank; 0: nothing bound them.
	BudgetBytes int64 `json:"budget_bytes,omitempty"`
	// SimulatedRanks is how many ranks were simulated. The others are copies, with the same result.
	SimulatedRanks int `json:"simulated_ranks"`
}

// Compare replays a run of b on so many ranks, perNode on each node, under every policy of o. It
// returns one Result for each policy, in that order.
func Compare(ctx context.Context, b *Base, kind Kind, ranks, perNode int, o replay.Options, d Options) ([]Result, error) {
	parts, err := divide(b, kind, ranks, perNode, d)
	if err != nil {
		return nil, err
	}
	o.EnsureDefaults()
	asked := o.Policies
	o.Policies = withReferences(asked)
	o.SeriesFromNs, o.SeriesToNs = 0, 1 // thousands of ranks: no curves
	var sums []Result
	for _, p := range parts {
		o.Nodes = nodes(p.job.Ranks(), perNode)
		rs, err := replay.CompareJob(ctx, o, p.job)
		if err != nil {
			return nil, err
		}
		sums = add(sums, rs, p)
	}
	byPolicy := map[string]*Result{}
	for i := range sums {
		r := &sums[i]
		r.Scaling, r.Ranks, r.PerNode = kind, ranks, perNode
		if o.BudgetHelped && o.BudgetOf(r.Policy) != mem.Unlimited {
			r.BudgetBytes = o.BudgetBytes
		}
		r.NodeMeanPeakBytes /= float64(r.Nodes)
		r.NodeAvgBytes /= float64(r.Nodes)
		byPolicy[r.Policy] = r
	}
	var out []Result
	for _, policy := range asked {
		r := byPolicy[policy]
		r.Relate(&byPolicy[replay.LeavePinned].Result, &byPolicy[replay.Oracle].Result)
		out = append(out, *r)
	}
	return out, nil
}

// withReferences adds the policies that the others are compared with.
func withReferences(asked []string) []string {
	all := slices.Clone(asked)
	for _, p := range []string{replay.LeavePinned, replay.Oracle} {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// part is a job, and how often the run has it.
type part struct {
	job   replay.Job
	times int
}

// divide returns what is to be simulated of a run. Copies of the recorded run are equal, and whole
// nodes of them: the least number of ranks that fills tiles and nodes is simulated once, and what is
// left over once more.
func divide(b *Base, kind Kind, ranks, perNode int, d Options) ([]part, error) {
	if perNode < 1 {
		return nil, fmt.Errorf("%d ranks on a node: must be at least 1", perNode)
	}
	if kind != Copies {
		d.Grown = kind == Weak
		job, err := StrongJob(b, ranks, d)
		return []part{{job, 1}}, err
	}
	n := len(b.ranks)
	if ranks < n || ranks%n != 0 {
		return nil, unfit(b, ranks, fmt.Sprintf("copies of %d ranks give a multiple of %d", n, n))
	}
	group := n / gcd(n, perNode) * perNode
	var parts []part
	if times := ranks / group; times > 0 {
		parts = append(parts, part{Tiled(b, group/n), times})
	}
	if left := ranks % group; left > 0 {
		parts = append(parts, part{Tiled(b, left/n), 1})
	}
	return parts, nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func nodes(ranks, perNode int) (all [][]int) {
	for r := range ranks {
		if r%perNode == 0 {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], r)
	}
	return all
}

// add adds the results of a part to the sums, which have one for each policy.
func add(sums []Result, rs []replay.Result, p part) []Result {
	var i int
	for k := range rs {
		r := &rs[k]
		if r.Rank >= 0 {
			continue
		}
		if i == len(sums) {
			sums = append(sums, Result{Result: replay.Result{
				Trace: r.Trace, Rank: r.Rank, Policy: r.Policy, Provider: r.Provider, Mode: r.Mode, Timeline: r.Timeline,
			}})
		}
		s := &sums[i]
		if r.Node != nil {
			s.Nodes += p.times
			s.NodePeakBytes = max(s.NodePeakBytes, r.PeakPinnedBytes)
			s.NodeMeanPeakBytes += float64(r.PeakPinnedBytes) * float64(p.times)
			s.NodeAvgBytes += r.AvgPinnedBytes * float64(p.times)
			continue
		}
		s.Include(r, p.times)
		s.SimulatedRanks += p.job.Ranks()
		i++ // the sum over all ranks is the last of a policy
	}
	return sums
}
