package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pinwheel/mem"
	"pinwheel/replay"
	"pinwheel/trace"
)

type compareCmd struct {
	format
	model
	Policy []string `placeholder:"NAME" help:"Policies to run. Default: all."`
	Ranks  []int    `placeholder:"N" help:"Ranks to report. Default: all ranks together."`
	Traces []string `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (compareCmd) Help() string {
	return `Policies: ` + strings.Join(replay.Policies(), ", ") + `.

Examples:
  nasreplay compare results/traces/*.pwt
  nasreplay compare --policy paper,pinwheel,oracle --ranks 0,2 --json ft.B.4.pwt
  nasreplay compare --timeline recorded --costs uring --latency 1us --bandwidth 200 lu.B.4.pwt
  nasreplay compare --per-node 4 --policy leave-pinned,pinwheel ft.C.16.pwt`
}

func (c *compareCmd) Run(e *env) error {
	if err := checkPolicies(c.Policy); err != nil {
		return err
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	o.Policies = c.Policy
	first := true
	return e.eachTrace(c.Traces, func(f *trace.File) error {
		if _, err := pickRanks(f, c.Ranks); err != nil {
			return err
		}
		rs, err := replayTrace(e, f, c.forTrace(o, f))
		if err != nil {
			return err
		}
		rs = c.pick(rs)
		switch {
		case c.JSON:
			for i := range rs {
				if err := writeJSON(e.stdout, &rs[i]); err != nil {
					return err
				}
			}
			return nil
		case c.CSV:
			t := resultCSV(rs)
			defer func() { first = false }()
			return t.writeCSV(e.stdout, first)
		}
		return printResults(e, rs)
	})
}

// replayTrace runs the policies with a progress bar.
func replayTrace(e *env, f *trace.File, o replay.Options) ([]replay.Result, error) {
	bar := newReplayBar(e, f, &o)
	defer bar.finish()
	rs, err := replay.Compare(e.ctx, o, f)
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
		return r.Rank != replay.AllRanks && !c.JSON && !c.CSV
	})
}

func printResults(e *env, rs []replay.Result) error {
	t := table{header: []string{"policy", "of", ">peak", ">", ">average", ">", ">first", ">late", ">helper", ">wasted", ">stall", ">run time", ">slowdown",
		">err <0.5%", ">err <5%", ">captured avg", ">peak"}}
	base := map[string]*replay.Result{}
	for i := range rs {
		if rs[i].Policy == replay.LeavePinned {
			base[scope(&rs[i])] = &rs[i]
		}
	}
	for i := range rs {
		r, b := &rs[i], base[scope(&rs[i])]
		peakSaved, avgSaved := "", ""
		if b != nil && b != r {
			peakSaved = change(float64(r.PeakPinnedBytes), float64(b.PeakPinnedBytes))
			avgSaved = change(r.AvgPinnedBytes, b.AvgPinnedBytes)
		}
		t.add(r.Policy, scope(r), mem.FormatBytes(uint64(r.PeakPinnedBytes)), peakSaved, mem.FormatBytes(uint64(r.AvgPinnedBytes)), avgSaved,
			strconv.FormatInt(r.FirstRegs, 10), strconv.FormatInt(r.LateRegs, 10), strconv.FormatInt(r.HelperRegs, 10), strconv.FormatInt(r.WastedRegs, 10),
			formatNs(r.StallNs), formatNs(r.RunNs), optional(r.Slowdown, "%.4f"), share(r.Err05), share(r.Err5), optional(r.CapturedAvg, "%.3f"), optional(r.CapturedPeak, "%.3f"))
	}
	if len(rs) > 0 {
		fmt.Fprintf(e.stdout, "%s: %s mode, %s timeline, costs of %s\n", rs[0].Trace, rs[0].Mode, rs[0].Timeline, rs[0].Provider)
	}
	if err := t.write(e.stdout, "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.stdout)
	return err
}

// scope names what a result is about.
func scope(r *replay.Result) string {
	switch {
	case r.Node != nil:
		return "node " + strconv.Itoa(*r.Node)
	case r.Rank == replay.AllRanks:
		return "all"
	}
	return "rank " + strconv.Itoa(r.Rank)
}

// change prints the relative difference of v to base: "-31.0 %".
func change(v, base float64) string {
	if base == 0 {
		return ""
	}
	return fmt.Sprintf("%+.1f %%", 100*(v-base)/base)
}

func optional(v *float64, format string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}

func share(v *float64) string {
	if v == nil {
		return "-"
	}
	return percent(*v)
}
