package realtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"pinwheel/helper"
	"pinwheel/internal/clock"
	"pinwheel/internal/measure"
	"pinwheel/internal/version"
	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/trace"
	"pinwheel/verbs"
)

// Compare replays the ranks of o.Ranks, one after another, under every policy of
// o.Policies, and returns a Result for each policy and rank, in that order. The
// results compare each policy with leave-pinned in the same round, and with the
// clairvoyant bound of the timeline. Compare fails with verbs.ErrPinnedMemory if p
// can't pin all buffers of a rank, as leave-pinned does.
//
// Compare maps and touches as much memory as a rank's buffers need. It uses two
// processors, and raises GOMAXPROCS while it runs so that neither thread waits
// for the other's P. The caller closes p.
func Compare(ctx context.Context, o Options, file *trace.File, p verbs.Provider) ([]replay.Result, error) {
	o.EnsureDefaults()
	if err := o.checkTrace(file); err != nil {
		return nil, err
	}
	clock.Calibrate()
	procs := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(procs + 2)
	defer runtime.GOMAXPROCS(procs)
	perRank := make([][]replay.Result, len(o.Ranks))
	for i, rank := range o.Ranks {
		var err error
		if perRank[i], err = compareRank(ctx, &o, file, p, rank); err != nil {
			return nil, fmt.Errorf("rank %d: %w", rank, err)
		}
	}
	var out []replay.Result
	for i := range o.Policies {
		for _, rs := range perRank {
			out = append(out, rs[i])
		}
	}
	return out, nil
}

// compareRank runs all policies on one rank, in rounds, and returns a Result for each.
func compareRank(ctx context.Context, o *Options, file *trace.File, p verbs.Provider, rank int) (_ []replay.Result, err error) {
	survey, err := replay.Survey(ctx, &o.Options, file, rank, o.Scale)
	if err != nil {
		return nil, err
	}
	if err := checkLimit(p, &survey.Needed); err != nil {
		return nil, err
	}
	survey.Needed.Add(replay.BouncePool(o.BounceBytes))
	a, err := newArena(&survey.Needed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	others := slices.DeleteFunc(slices.Clone(o.Policies), func(p string) bool { return p == replay.LeavePinned })
	rounds := make([]map[string]*player, o.Pairs)
	for i := range rounds {
		rounds[i] = map[string]*player{}
		for _, policy := range append([]string{replay.LeavePinned}, others...) {
			pl := &player{opt: o, policy: policy, arena: a, provider: p, cpus: twoCPUs()}
			if o.Trained != nil && policy == replay.Pinwheel {
				pl.trained = o.Trained(rank)
			}
			if err := pl.playAlone(ctx, file, rank); err != nil {
				return nil, fmt.Errorf("policy %s: %w", policy, err)
			}
			rounds[i][policy] = pl
			if o.Progress != nil {
				o.Progress(1)
			}
		}
	}
	var out []replay.Result
	for _, policy := range o.Policies {
		r := medianResult(rounds, policy, &survey.Bound)
		r.Trace, r.Rank, r.Provider, r.Timeline, r.Scale = file.Header().Program, rank, p.Name(), o.Timeline, o.Scale
		out = append(out, r)
	}
	return out, nil
}

// playAlone runs the player on a thread of its own.
func (p *player) playAlone(ctx context.Context, file *trace.File, rank int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the simulation, if the run failed before it
	next := replay.Events(ctx, &p.opt.Options, file, rank)
	done := make(chan error)
	go func() { done <- p.play(ctx, next) }()
	return <-done
}

// medianResult is the run of a policy with the median run time, and how all its
// runs compare with leave-pinned.
func medianResult(rounds []map[string]*player, policy string, bound *replay.Result) replay.Result {
	byTime := slices.Clone(rounds)
	slices.SortStableFunc(byTime, func(x, y map[string]*player) int { return cmp.Compare(x[policy].runNs, y[policy].runNs) })
	median := byTime[len(byTime)/2]
	r := median[policy].result()
	base := median[replay.LeavePinned].result()
	r.Relate(&base, bound)
	var slowdowns []float64
	for _, round := range rounds {
		slowdowns = append(slowdowns, float64(round[policy].runNs)/float64(round[replay.LeavePinned].runNs))
		r.VMSamples += round[policy].check.samples
		r.VMDiffPages = max(r.VMDiffPages, round[policy].check.diffPages)
	}
	middle := measure.Median(slowdowns)
	r.Slowdown, r.SlowdownMin, r.SlowdownMax, r.Pairs = &middle, slices.Min(slowdowns), slices.Max(slowdowns), len(slowdowns)
	return r
}

func (p *player) result() replay.Result {
	return replay.Result{
		Policy: p.policy, Mode: "real", PeakPinnedBytes: p.peak, AvgPinnedBytes: p.mean, Counts: p.stats,
		RunNs: p.runNs, TraceEvents: p.events, Pinned: *p.counted.usage.Series(), Errors: p.errors, RealRun: &replay.RealRun{Version: version.String(), Profile: p.trained != nil},
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
