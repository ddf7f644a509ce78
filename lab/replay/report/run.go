package report

import (
	"context"
	"fmt"

	"pinwheel/internal/usage"
	"pinwheel/lab/replay"
	"pinwheel/trace"
	"pinwheel/verbs"
)

// Costs are a named cost model.
type Costs struct {
	Name string
	verbs.Costs
	Note string // where it comes from, for people
}

// Run is one trace under one cost model and timeline: all policies asked for.
type Run struct {
	program string
	options replay.Options
	results []replay.Result
	own     ownErrors // of policy paper; zero unless graded
}

// Replay replays a trace in virtual time.
func Replay(ctx context.Context, f *trace.File, o replay.Options) (*Run, error) {
	o.EnsureDefaults()
	rs, err := replay.Compare(ctx, o, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Header().Program, err)
	}
	return &Run{program: f.Header().Program, options: o, results: rs}, nil
}

// of returns the result of a policy over all ranks; nil if it was not run.
func (r *Run) of(policy string) *replay.Result { return r.find(policy, replay.AllRanks) }

func (r *Run) find(policy string, rank int) *replay.Result {
	return r.first(func(x *replay.Result) bool { return x.Policy == policy && x.Rank == rank && x.Node == nil })
}

// node returns the result of a policy on one node.
func (r *Run) node(policy string, node int) *replay.Result {
	return r.first(func(x *replay.Result) bool { return x.Policy == policy && x.Node != nil && *x.Node == node })
}

func (r *Run) first(is func(*replay.Result) bool) *replay.Result {
	for i := range r.results {
		if is(&r.results[i]) {
			return &r.results[i]
		}
	}
	return nil
}

// ranks is the number of ranks of the trace.
func (r *Run) ranks() int {
	n := 0
	for i := range r.results {
		n = max(n, r.results[i].Rank+1)
	}
	return n
}

// replayFile replays the trace in a file. One that is cut off is refused: a
// report is of whole runs.
func replayFile(ctx context.Context, path string, o replay.Options) (*Run, error) {
	f, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	if torn := f.Torn(); torn != nil {
		return nil, torn
	}
	return Replay(ctx, f, o)
}

// options returns those of a replay under a cost model and some policies; none means all.
func (c *Costs) options(policies ...string) replay.Options {
	return replay.Options{Costs: c.Costs, Provider: c.Name, Policies: policies}
}

// capturedLate is the share of the possible saving that a policy reaches in the
// second half of the time since the first registration, when it has seen
// everything before.
func (r *Run) capturedLate(policy string) *float64 {
	bytes := func(policy string) (sum float64) {
		for rank := range r.ranks() {
			x := r.find(policy, rank)
			sum += meanFrom(&x.Pinned, (firstPinned(&r.find(replay.LeavePinned, rank).Pinned)+x.RunNs)/2)
		}
		return sum
	}
	base, bound := bytes(replay.LeavePinned), bytes(replay.Oracle)
	if base == bound {
		return nil
	}
	share := (base - bytes(policy)) / (base - bound)
	return &share
}

// meanFrom is the mean of a series from the bin that holds a time on.
func meanFrom(s *usage.Series, fromNs int64) float64 {
	var sum, width float64
	for i := int((fromNs - s.FromNs) / s.WidthNs); i < len(s.Peak); i++ {
		w := float64(min(s.WidthNs, s.ToNs-s.FromNs-int64(i)*s.WidthNs))
		sum += s.Mean(i) * w
		width += w
	}
	return sum / max(width, 1)
}

// saved is the share of a that b does without.
func saved(a, b float64) float64 {
	if a == 0 {
		return 0
	}
	return 1 - b/a
}
