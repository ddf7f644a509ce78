package report

import (
	"context"
	"fmt"
	"slices"

	"pinwheel/replay"
	"pinwheel/trace"
	"pinwheel/verbs"
)

// Costs are a named cost model.
type Costs struct {
	Name string
	verbs.Costs
	Note string // where it comes from, for people
}

// run is one trace under one cost model and timeline: all policies.
type run struct {
	program  string
	costs    string
	timeline replay.Timeline
	results  []replay.Result
}

// of returns the result of a policy over all ranks; nil if it was not run.
func (r *run) of(policy string) *replay.Result { return r.find(policy, replay.AllRanks) }

func (r *run) find(policy string, rank int) *replay.Result {
	for i := range r.results {
		if x := &r.results[i]; x.Policy == policy && x.Rank == rank && x.Node == nil {
			return x
		}
	}
	return nil
}

// node returns the result of a policy on one node.
func (r *run) node(policy string, node int) *replay.Result {
	for i := range r.results {
		if x := &r.results[i]; x.Policy == policy && x.Node != nil && *x.Node == node {
			return x
		}
	}
	return nil
}

// replayAll runs all policies with the given change of the default options.
func replayAll(ctx context.Context, path string, change func(*replay.Options)) (*run, error) {
	f, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if torn := f.Torn(); torn != nil {
		return nil, torn // a report is of whole runs
	}
	var o replay.Options
	change(&o)
	o.EnsureDefaults()
	rs, err := replay.Compare(ctx, o, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &run{program: f.Header().Program, costs: o.Provider, timeline: o.Timeline, results: rs}, nil
}

// with returns options for a cost model and some policies.
func (c *Costs) with(o *replay.Options, policies ...string) {
	o.Costs, o.Provider, o.Policies = c.Costs, c.Name, policies
}

// lateShare is the share of needs after the first that the communication
// path had to register for.
func lateShare(r *replay.Result) float64 {
	later := r.Needs - r.FirstRegs
	if later <= 0 {
		return 0
	}
	return float64(r.LateRegs) / float64(later)
}

// saved is the share of a that b does without.
func saved(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return 1 - b/a
}

// index finds a run.
func index(runs []*run, program, costs string, t replay.Timeline) *run {
	i := slices.IndexFunc(runs, func(r *run) bool { return r.program == program && r.costs == costs && r.timeline == t })
	if i < 0 {
		return nil
	}
	return runs[i]
}
