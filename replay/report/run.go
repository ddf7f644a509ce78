package report

import (
	"context"
	"fmt"

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

// replayAll replays one trace.
func replayAll(ctx context.Context, path string, o replay.Options) (*run, error) {
	f, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if torn := f.Torn(); torn != nil {
		return nil, torn // a report is of whole runs
	}
	o.EnsureDefaults()
	rs, err := replay.Compare(ctx, o, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &run{program: f.Header().Program, costs: o.Provider, timeline: o.Timeline, results: rs}, nil
}

// replayEach replays traces under the same options.
func replayEach(ctx context.Context, paths []string, o replay.Options) ([]*run, error) {
	var runs []*run
	for _, path := range paths {
		r, err := replayAll(ctx, path, o)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}

// options returns those of a replay under a cost model and some policies; none means all.
func (c *Costs) options(policies ...string) replay.Options {
	return replay.Options{Costs: c.Costs, Provider: c.Name, Policies: policies}
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
