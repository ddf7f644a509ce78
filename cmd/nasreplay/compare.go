package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/realtime"
	"pinwheel/trace"
	"pinwheel/verbs"
)

type compareCmd struct {
	format
	model
	profiled
	Cost         percents      `placeholder:"0.5%" help:"Most that late uses may cost a rank under policy pinwheel, as a share of its time; without an idle core, uses on demand. Several values, as .1%,.5%,1%, replay the policy once for each. Default: 0.5%."`
	Policy       command.Names `placeholder:"NAME" help:"Policies to run. Default: all policies of the mode."`
	Mode         string        `default:"virtual" enum:"virtual,real" help:"Replay in simulated time, or in real time with real registrations: ${enum}."`
	Provider     *string       `enum:"auto,rdma,uring,mlock,sim" placeholder:"auto" help:"Real mode: the provider that registers memory: ${enum}. sim waits as long as --costs says."`
	Ranks        numbers       `placeholder:"N" help:"Ranks to report, or to replay in real mode. Default: all ranks together, or rank 0 in real mode."`
	Scale        float64       `default:"1" help:"Real mode: stretch the timeline; 0.1 is ten times as fast."`
	Pairs        int           `default:"1" help:"Real mode: run every policy this often, each time beside leave-pinned, and report the median."`
	SkipTooLarge bool          `help:"Real mode: skip traces that need more pinned memory than this process may have. They do not count as failures."`
	Traces       []string      `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (compareCmd) Help() string {
	return `Policies: ` + strings.Join(replay.Policies(), ", ") + `. Only on request there is
` + replay.Clairvoyant + `: pinwheel with perfect predictions, which is what --workers N can do.

In real mode, a trace may need more pinned memory than the process may have (RLIMIT_MEMLOCK, see ulimit -l). Then compare prints
one line about it, replays the other traces, and exits with status 1. With --skip-too-large the status is 0, even if no trace is left.

Examples:
  nasreplay compare results/traces/*.pwt
  nasreplay compare --policy paper,pinwheel,oracle --ranks 0,2 --json ft.B.4.pwt
  nasreplay compare --cost .1%,.5%,1% --policy pinwheel ft.B.4.pwt
  nasreplay compare --timeline recorded --costs uring --latency 1us --bandwidth 200 lu.B.4.pwt
  nasreplay compare --budget 192M --policy lru,paper,pinwheel ft.B.4.pwt
  nasreplay compare --profile ft.profile --policy leave-pinned,pinwheel ft.B.4.pwt
  nasreplay compare --per-node 4 --policy leave-pinned,pinwheel ft.C.16.pwt
  nasreplay compare --per-node 4 --idle-cores 2 --idle-policy aggressive ft.C.16.pwt
  nasreplay compare --workers 4 --policy pinwheel,clairvoyant,oracle is.C.4.pwt
  nasreplay compare --mode real --provider uring --scale 0.1 --policy leave-pinned,pinwheel ft.B.4.pwt
  nasreplay compare --mode real --skip-too-large results/traces/*.pwt`
}

func (c *compareCmd) Run(e *command.Env) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	run := func(f *trace.File) (rs []replay.Result, regime string, err error) {
		o := c.forTrace(o.Options, f)
		if regime, err = c.regime(&o, f); err != nil {
			return nil, "", err
		}
		if err := c.begin(e, &o, f); err != nil {
			return nil, "", err
		}
		rs, err = replayTrace(e, f, o)
		return rs, regime, err
	}
	if c.Mode == "real" {
		p, err := openProvider(c.provider(), o.Costs)
		if err != nil {
			return err
		}
		defer p.Close() // every result is there by then
		run = func(f *trace.File) (rs []replay.Result, regime string, err error) {
			o := o
			if err := c.begin(e, &o.Options, f); err != nil {
				return nil, "", err
			}
			rs, err = replayReal(e, f, o, p)
			return rs, "", err
		}
	}
	c.each(e, run)
	return nil
}

// each runs every trace and prints its results. run also returns what helpers were given, "" in real time.
func (c *compareCmd) each(e *command.Env, run func(f *trace.File) (rs []replay.Result, regime string, err error)) {
	first := true
	eachTrace(e, c.Traces, func(f *trace.File) error {
		if _, err := pickRanks(f, c.Ranks); err != nil {
			return err
		}
		rs, regime, err := run(f)
		if c.SkipTooLarge && errors.Is(err, verbs.ErrPinnedMemory) {
			e.Note("skipped: %v", err)
			return nil
		}
		if err != nil {
			return err
		}
		rs = c.pick(rs)
		switch {
		case c.JSON:
			for i := range rs {
				if err := writeJSON(e.Stdout, &rs[i]); err != nil {
					return err
				}
			}
			return nil
		case c.CSV:
			t := resultCSV(rs)
			defer func() { first = false }()
			return t.writeCSV(e.Stdout, first)
		}
		return printResults(e, rs, regime, c.Policy)
	})
}

// options adds the flags of compare to those of the model.
func (c *compareCmd) options() (o realtime.Options, err error) {
	if o.Options, err = c.model.options(c.Cost...); err != nil {
		return o, err
	}
	if err := cmp.Or(c.profiled.check(), checkPolicies(c.Policy)); err != nil {
		return o, err
	}
	if c.Mode == "real" {
		for _, p := range c.Policy {
			if !slices.Contains(realtime.Policies(), p) {
				return o, command.Usagef("--mode real has no policy %s (choose from %s)", p, strings.Join(realtime.Policies(), ", "))
			}
		}
		if c.Workers != 1 {
			return o, command.Usagef("--workers is for virtual mode: in real mode, idle cores are the workers'")
		}
		if len(c.Cost) > 1 {
			return o, command.Usagef("several values of --cost are for virtual mode")
		}
		if c.Scale == 0 || c.Pairs == 0 || c.PerNode != nil {
			return o, command.Usagef("--scale and --pairs must be positive, and --per-node is for virtual mode")
		}
	} else if c.Scale != 1 || c.Pairs != 1 || c.Provider != nil || c.SkipTooLarge {
		return o, command.Usagef("--scale, --pairs, --provider and --skip-too-large are for --mode real")
	}
	if table := !c.JSON && !c.CSV; table && len(c.Policy) > 0 && !slices.Contains(c.Policy, replay.LeavePinned) {
		o.Policies = []string{replay.LeavePinned} // for what the others save
	}
	o.Policies = append(o.Policies, c.Policy...)
	o.Ranks, o.Scale, o.Pairs = c.Ranks, c.Scale, c.Pairs
	check := o.Options.Check
	if c.Mode == "real" {
		check = o.Check
	}
	if err := check(); err != nil {
		return o, command.AsUsage(err)
	}
	return o, nil
}

func (c *compareCmd) provider() string {
	if c.Provider == nil {
		return "auto"
	}
	return *c.Provider
}

// replayReal runs the policies in real time with a progress bar over runs.
func replayReal(e *command.Env, f *trace.File, o realtime.Options, p verbs.Provider) ([]replay.Result, error) {
	bar := progress(e, -1, f.Header().Program+" in real time")
	defer func() { _ = bar.Finish() }()
	o.Progress = func(runs int64) { _ = bar.Add64(runs) }
	rs, err := realtime.Compare(context.Background(), o, f, p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Header().Program, err)
	}
	return rs, nil
}

// replayTrace runs the policies with a progress bar.
func replayTrace(e *command.Env, f *trace.File, o replay.Options) ([]replay.Result, error) {
	o.EnsureDefaults()
	var records int64
	for _, r := range f.Ranks() {
		records += int64(f.Records(r))
	}
	bar := progress(e, records*int64(o.Passes()), f.Header().Program)
	defer func() { _ = bar.Finish() }()
	if e.Terminal {
		o.Progress = func(records int64) { _ = bar.Add64(records) } // the bar is decoration
	}
	rs, err := replay.Compare(context.Background(), o, f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Header().Program, err)
	}
	return rs, nil
}

// pick keeps what is to be reported: the ranks asked for; otherwise, on the
// terminal, the sums and nodes only.
func (c *compareCmd) pick(rs []replay.Result) []replay.Result {
	return slices.DeleteFunc(rs, func(r replay.Result) bool {
		if len(c.Ranks) > 0 {
			return !slices.Contains(c.Ranks, r.Rank)
		}
		return r.Rank != replay.AllRanks && c.Mode != "real" && !c.JSON && !c.CSV
	})
}
