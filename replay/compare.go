package replay

import (
	"context"
	"fmt"

	"pinwheel/trace"
)

// Compare runs policies over one trace in virtual time.
func Compare(ctx context.Context, o Options, file *trace.File) ([]Result, error) {
	o.EnsureDefaults()
	if err := CheckPolicies(o.Policies); err != nil {
		return nil, err
	}
	base, late, err := pass(ctx, &o, file, LeavePinned, 0)
	if err != nil {
		return nil, err
	}
	bound, _, err := pass(ctx, &o, file, Oracle, late)
	if err != nil {
		return nil, err
	}
	var out []Result
	for _, p := range o.Policies {
		var rs []Result
		switch p {
		case LeavePinned:
			rs = base
		case Oracle:
			rs = bound
		default:
			if rs, _, err = pass(ctx, &o, file, p, late); err != nil {
				return nil, fmt.Errorf("policy %s: %w", p, err)
			}
		}
		for i := range rs {
			rs[i].relate(&base[i], &bound[i])
		}
		out = append(out, rs...)
	}
	return out, nil
}

// pass runs one policy: a result per rank, and the last for all of them.
func pass(ctx context.Context, o *Options, file *trace.File, policy string, late int64) ([]Result, int64, error) {
	opt := *o
	if policy == Oracle {
		opt.LookupNs = 0
	}
	e, err := newEngine(&opt, file)
	if err != nil {
		return nil, 0, err
	}
	if policy == Pipeline {
		e.pipelined = true
		pages := opt.PipelineBytes / 4096
		opt.Network.registerNsPerByte = float64(opt.Costs.Register.Ns(pages)) / float64(opt.PipelineBytes)
	}
	for _, r := range e.ranks {
		if err := e.install(r, policy, late); err != nil {
			return nil, 0, err
		}
	}
	if err := e.run(ctx); err != nil {
		return nil, 0, err
	}
	var rs []Result
	all := Result{Rank: AllRanks}
	for _, r := range e.ranks {
		x := Result{Rank: r.id, RunNs: r.endNs, counters: r.stats, PeakPinnedBytes: r.usage.peak, AvgPinnedBytes: r.usage.average(), TraceEvents: r.prog.records, Torn: r.torn}
		if c, ok := r.path.(*cachedPath); ok && c.errors != nil {
			x.Predictions, x.below05, x.in5, x.errorsBins = c.errors.n, c.errors.below05, c.errors.below5, c.errors.bins
		}
		all.counters.add(&x.counters)
		all.PeakPinnedBytes += x.PeakPinnedBytes
		all.AvgPinnedBytes += x.AvgPinnedBytes
		all.RunNs = max(all.RunNs, x.RunNs)
		all.TraceEvents += x.TraceEvents
		all.Predictions += x.Predictions
		all.below05 += x.below05
		all.in5 += x.in5
		all.Torn = all.Torn || x.Torn
		rs = append(rs, x)
	}
	rs = append(rs, all)
	for i := range rs {
		x := &rs[i]
		x.Trace, x.Policy, x.Provider, x.Mode, x.Timeline = file.Header().Program, policy, "sim", "virtual", o.Timeline
		if x.Predictions > 0 {
			a, b := float64(x.below05)/float64(x.Predictions), float64(x.in5)/float64(x.Predictions)
			x.Err05, x.Err5 = &a, &b
		}
	}
	return rs, o.Costs.Register.Ns(e.largest()), nil
}

// largest is the number of pages of the largest buffer needed.
func (e *engine) largest() uint64 { return e.largestPages }

func (x *Result) relate(base, bound *Result) {
	ratio := func(a, b float64) *float64 {
		if b == 0 {
			return nil
		}
		r := a / b
		return &r
	}
	x.Slowdown = ratio(float64(x.RunNs), float64(base.RunNs))
	x.CapturedAvg = ratio(base.AvgPinnedBytes-x.AvgPinnedBytes, base.AvgPinnedBytes-bound.AvgPinnedBytes)
	x.CapturedPeak = ratio(float64(base.PeakPinnedBytes-x.PeakPinnedBytes), float64(base.PeakPinnedBytes-bound.PeakPinnedBytes))
}
