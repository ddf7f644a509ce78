package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"pinwheel/internal/usage"
	"pinwheel/trace"
)

// Compare replays one trace in virtual time under every policy of o.Policies
// and returns, for each policy in that order and each of o.CostCurve, one Result for each rank, one
// for each node of o.Nodes, and one for all ranks together. It fails with the
// ranks and lines that are to blame if the calls of the trace don't match.
//
// Policy leave-pinned, to which the others are compared, and the oracle are
// always replayed; policies run on o.Parallel processors.
func Compare(ctx context.Context, o Options, file *trace.File) ([]Result, error) {
	if err := o.CheckTrace(file); err != nil {
		return nil, err
	}
	return CompareJob(ctx, o, recorded{file})
}

// CompareJob is Compare of a job that may be derived from a trace.
func CompareJob(ctx context.Context, o Options, job Job) ([]Result, error) {
	o.EnsureDefaults()
	if err := cmp.Or(o.Check(), o.checkNodes(job.Ranks())); err != nil {
		return nil, err
	}
	base, err := pass(ctx, &o, job, LeavePinned, nil)
	if err != nil {
		return nil, err
	}
	results := map[passKey]*passResult{{LeavePinned, 0}: &base}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Parallel)
	for _, key := range append([]passKey{{Oracle, 0}}, o.passes()...) {
		if results[key] != nil {
			continue
		}
		res, opt := &passResult{}, o.at(key.cost)
		results[key] = res
		group.Go(func() (err error) {
			if *res, err = pass(ctx, &opt, job, key.policy, &base); err != nil {
				err = fmt.Errorf("policy %s: %w", key.policy, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []Result
	for _, key := range o.passes() {
		for i, r := range results[key].results {
			r.Relate(&base.results[i], &results[passKey{Oracle, 0}].results[i])
			out = append(out, r)
		}
	}
	return out, nil
}

// passKey is what tells passes of one replay apart.
type passKey struct {
	policy string
	cost   float64
}

// passes are those that there are to be results of, in their order.
func (o *Options) passes() (keys []passKey) {
	for _, policy := range o.Policies {
		for _, cost := range o.costsOf(policy) {
			keys = append(keys, passKey{policy, cost})
		}
	}
	return keys
}

// passResult is one policy: per rank, per node, and all.
type passResult struct {
	results []Result
	lateNs  int64    // cost of registering the largest buffer that was needed
	logs    []useLog // of every rank under leave-pinned, for Clairvoyant; else nil
}

// pass replays one policy. base is the pass of leave-pinned; nil: this is it.
func pass(ctx context.Context, o *Options, job Job, policy string, base *passResult) (passResult, error) {
	if base == nil {
		base = &passResult{logs: make([]useLog, job.Ranks())}
		for r := range base.logs {
			if slices.Contains(o.Policies, Clairvoyant) {
				base.logs[r] = useLog{}
			}
		}
	}
	opt := *o
	switch policy {
	case Oracle:
		opt.LookupNs = 0
	case Pipeline:
		opt.Network.registerNsPerByte = o.pipelineNsPerByte()
	}
	e, err := newEngine(&opt, job)
	if err != nil {
		return passResult{}, err
	}
	nodes := make([]usage.Usage, len(o.Nodes))
	for i, ranks := range o.Nodes {
		nodes[i] = usage.New(o.SeriesFromNs, o.SeriesToNs)
		for _, r := range ranks {
			e.ranks[r].pages.AddUsage(&nodes[i])
		}
	}
	for i, r := range e.ranks {
		r.log = base.logs[i]
	}
	if err := e.install(policy, base.lateNs); err != nil {
		return passResult{}, err
	}
	for i := range nodes {
		nodes[i].LateNs = e.ranks[0].usage.LateNs
	}
	var reported int64
	report := func(records int64) {
		if o.Progress != nil {
			o.Progress(records - reported)
		}
		reported = records
	}
	if err := e.run(ctx, report); err != nil {
		return passResult{}, err
	}
	report(e.records())
	e.tellLearned()
	res := passResult{e.results(job.Program(), policy, nodes), o.Costs.Register.Ns(e.largestPages), base.logs}
	return res, e.close()
}

// results collects what was measured.
func (e *engine) results(name, policy string, nodes []usage.Usage) []Result {
	blank := Result{Trace: name, Rank: AllRanks, Policy: policy, Provider: e.opt.Provider, Mode: "virtual", Timeline: e.opt.Timeline}
	if helped(policy) {
		blank.HelperShare = e.opt.HelperShare
	}
	if hasCost(policy) {
		blank.Cost = e.opt.Cost
	}
	if o := e.opt.Workers; hasCost(policy) && o > 1 {
		blank.Workers = o
	}
	all := blank
	var out []Result
	for _, r := range e.ranks {
		x := blank
		x.Rank, x.Counts, x.RunNs, x.TraceEvents, x.Torn = r.id, r.stats, r.endNs, r.prog.records, r.torn
		x.AvgPinnedBytes = r.usage.Close(r.endNs)
		x.PeakPinnedBytes, x.Pinned = r.usage.Peak(), *r.usage.Series()
		if r.helper != nil {
			x.Errors, x.LostUses = r.scored.Accuracy(), int64(r.helper.dq.Lost())
			x.Predictions, x.PriceNs = x.Errors.N, r.helper.priceNs()
		}
		x.Sharing = r.sharingAt(r.endNs, e.opt.Cores)
		all.Include(&x, 1)
		out = append(out, x)
	}
	for i := range nodes {
		x := blank
		x.Node = &i
		for _, r := range e.opt.Nodes[i] {
			x.count(&out[r], 1)
		}
		x.AvgPinnedBytes = nodes[i].Close(x.RunNs)
		x.PeakPinnedBytes, x.Pinned = nodes[i].Peak(), *nodes[i].Series()
		out = append(out, x)
	}
	return append(out, all)
}

// Include adds what one rank, or several, pin and count, so many times.
func (r *Result) Include(o *Result, times int) {
	r.count(o, times)
	r.PeakPinnedBytes += int64(times) * o.PeakPinnedBytes
	r.AvgPinnedBytes += float64(times) * o.AvgPinnedBytes
}

// count adds what is counted.
func (r *Result) count(o *Result, times int) {
	n := int64(times)
	r.Counts.add(&o.Counts, n)
	r.Errors.N += n * o.Errors.N
	r.Errors.Below05 += n * o.Errors.Below05
	r.Errors.Below5 += n * o.Errors.Below5
	for i := range o.Errors.Bins {
		r.Errors.Bins[i] += n * o.Errors.Bins[i]
	}
	if o.Sharing != nil {
		if r.Sharing == nil {
			r.Sharing = &Sharing{IdleCores: o.IdleCores, IdlePolicy: o.IdlePolicy}
		}
		r.Sharing.add(o.Sharing, n)
	}
	r.RunNs, r.PriceNs = max(r.RunNs, o.RunNs), max(r.PriceNs, o.PriceNs)
	r.TraceEvents += n * o.TraceEvents
	r.Torn = r.Torn || o.Torn
}
