package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/trace"
	"pinwheel/verbs"
)

// RealPolicies are those that run in real time, in the order of a table.
func RealPolicies() []string {
	return []string{LeavePinned, OnDemand, Bounce, LRU, Paper, Pinwheel}
}

// Real replays the ranks of o.Ranks in real time, one after another, under
// every policy of o.Policies, and returns a Result for each policy and rank,
// in that order. It fails with verbs.ErrPinnedMemory if p can't pin all
// buffers of a rank, as leave-pinned does. The timeline is that of o.Timeline on which registration
// costs nothing, times o.Scale: compute phases and transfers are waited out,
// and registrations, which p makes, put off everything after them. Policies are compared with
// the run of leave-pinned of the same round, of which there are o.Pairs, and
// with the clairvoyant bound of the timeline.
//
// Real maps and touches as much memory as the rank's buffers need. It uses
// two processors, and raises GOMAXPROCS while it runs so that neither thread
// waits for the other's P. The caller closes p.
func Real(ctx context.Context, o Options, file *trace.File, p verbs.Provider) ([]Result, error) {
	if len(o.Policies) == 0 {
		o.Policies = RealPolicies()
	}
	o.EnsureDefaults()
	if err := o.checkReal(file); err != nil {
		return nil, err
	}
	helper.CalibrateClock()
	procs := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(procs + 2)
	defer runtime.GOMAXPROCS(procs)
	perRank := make([][]Result, len(o.Ranks))
	for i, rank := range o.Ranks {
		var err error
		if perRank[i], err = realRank(ctx, &o, file, p, rank); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	var out []Result
	for i := range o.Policies {
		for _, rs := range perRank {
			out = append(out, rs[i])
		}
	}
	return out, nil
}

func (o *Options) checkReal(file *trace.File) error {
	if err := o.check(file); err != nil {
		return err
	}
	for _, policy := range o.Policies {
		if !slices.Contains(RealPolicies(), policy) {
			return fmt.Errorf("policy %q runs in virtual time only (in real time: %s)", policy, strings.Join(RealPolicies(), ", "))
		}
	}
	for _, rank := range o.Ranks {
		if rank < 0 || rank >= file.Header().Ranks {
			return fmt.Errorf("rank %d is not in this trace of %d ranks", rank, file.Header().Ranks)
		}
	}
	return nil
}

// realRank runs all policies on one rank, in rounds, and returns a Result for each.
func realRank(ctx context.Context, o *Options, file *trace.File, p verbs.Provider, rank int) (_ []Result, err error) {
	needed, bound, err := survey(ctx, o, file, rank)
	if err != nil {
		return nil, err
	}
	if err := checkLimit(p, &needed); err != nil {
		return nil, err
	}
	needed.Add(bouncePool(o.BounceBytes))
	a, err := newArena(&needed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	sites, err := file.Rank(rank)
	if err != nil {
		return nil, err
	}
	others := slices.DeleteFunc(slices.Clone(o.Policies), func(p string) bool { return p == LeavePinned })
	rounds := make([]map[string]*player, o.Pairs)
	for i := range rounds {
		rounds[i] = map[string]*player{}
		for k, policy := range append([]string{LeavePinned}, others...) {
			pl := &player{opt: o, policy: policy, arena: a, provider: p, sites: callSites{stream: sites}, cpus: twoCPUs()}
			if err := pl.playAlone(ctx, file, rank); err != nil {
				return nil, fmt.Errorf("policy %s: %w", policy, err)
			}
			rounds[i][policy] = pl
			if o.Progress != nil {
				o.Progress(Progress{policy, int64(i*(1+len(others)) + k + 1), int64(o.Pairs * (1 + len(others)))})
			}
		}
	}
	var out []Result
	for _, policy := range o.Policies {
		r := realResult(rounds, policy, &bound)
		r.Trace, r.Rank, r.Provider, r.Timeline, r.Scale = file.Header().Program, rank, p.Name(), o.Timeline, o.Scale
		out = append(out, r)
	}
	return out, nil
}

// playAlone runs the player on a thread of its own.
func (p *player) playAlone(ctx context.Context, file *trace.File, rank int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the simulation, if the run failed before it
	next := startSchedule(ctx, p.opt, file, rank)
	done := make(chan error)
	go func() { done <- p.play(ctx, next) }()
	return <-done
}

// realResult is the run of a policy with the median run time, and how all its
// runs compare with leave-pinned.
func realResult(rounds []map[string]*player, policy string, bound *Result) Result {
	byTime := slices.Clone(rounds)
	slices.SortStableFunc(byTime, func(x, y map[string]*player) int { return cmp.Compare(x[policy].runNs, y[policy].runNs) })
	median := byTime[len(byTime)/2]
	r := median[policy].result()
	base := median[LeavePinned].result()
	r.relate(&base, bound)
	var slowdowns []float64
	for _, round := range rounds {
		slowdowns = append(slowdowns, float64(round[policy].runNs)/float64(round[LeavePinned].runNs))
		r.VMSamples += round[policy].check.samples
		r.VMDiffPages = max(r.VMDiffPages, round[policy].check.diffPages)
	}
	slices.Sort(slowdowns)
	n := len(slowdowns)
	mid := (slowdowns[(n-1)/2] + slowdowns[n/2]) / 2
	r.Slowdown, r.SlowdownMin, r.SlowdownMax, r.Pairs = &mid, slowdowns[0], slowdowns[n-1], n
	return r
}

func (p *player) result() Result {
	return Result{
		Policy: p.policy, Mode: "real", PeakPinnedBytes: p.peak, AvgPinnedBytes: p.mean, Counts: p.stats,
		RunNs: p.runNs, TraceEvents: p.moments, Pinned: *p.ledger.usage.Series(), Errors: p.errors, RealRun: &RealRun{},
	}
}

// twoCPUs picks processors for communication path and helper: the first and
// the last that this process may use.
func twoCPUs() cpuPair {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil || set.Count() < 2 {
		return cpuPair{helper.AnyCPU, helper.AnyCPU}
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpuPair{cpus[0], cpus[len(cpus)-1]}
}

// survey finds, on the timeline that Real waits out, which pages a rank needs
// and the clairvoyant bound.
func survey(ctx context.Context, o *Options, file *trace.File, rank int) (needed mem.Set, bound Result, err error) {
	pages := &pagesPath{}
	e, err := simulate(ctx, o, file, onlyRank(rank, pages))
	if err != nil {
		return mem.Set{}, Result{}, err
	}
	s := newScaledOracle(o, e.largestPages)
	if e, err = simulate(ctx, o, file, onlyRank(rank, s)); err != nil {
		return mem.Set{}, Result{}, err
	}
	return pages.needed, s.finish(e.ranks[rank].endNs), nil
}

// checkLimit refuses a rank whose buffers the provider can't all pin: every
// policy is compared with leave-pinned, which does.
func checkLimit(p verbs.Provider, needed *mem.Set) error {
	need := int64(needed.Bytes())
	l := p.Limits()
	if need <= l.MaxPinnedBytes {
		return nil
	}
	advice := ""
	if l.PinnedSource == "RLIMIT_MEMLOCK" {
		advice = fmt.Sprintf(" (ulimit -l %d suffices)", need>>10)
	}
	return fmt.Errorf("leave-pinned pins %s here%s, %s allows %s: %w", mem.FormatBytes(uint64(need)), advice, l.PinnedSource, mem.FormatBytes(uint64(l.MaxPinnedBytes)), verbs.ErrPinnedMemory)
}

// pagesPath collects which pages a rank needs.
type pagesPath struct {
	freePath
	needed mem.Set
}

func (p *pagesPath) acquire(_ int64, n *need, _ *hold) (int64, error) {
	p.needed.Add(n.rng.PageAligned())
	return 0, nil
}
