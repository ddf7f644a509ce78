package main

import (
	"fmt"
	"slices"
	"strconv"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/report"
	"pinwheel/mem"
)

// printResults prints the results of one trace as a table for people. What
// they save is against those of leave-pinned, which are among them; if it was
// not asked for it gets no row. regime, if not empty, says what helpers were given.
func printResults(e *command.Env, rs []replay.Result, regime string, asked []string) error {
	if len(rs) == 0 {
		return nil
	}
	t := table{header: []string{"policy", "of", ">peak", ">", ">average", ">", ">first", ">late", ">helper", ">wasted", ">stall", ">run time", ">slowdown",
		">err <0.5%", ">err <5%", ">captured avg", ">peak"}}
	source := "costs of " + rs[0].Provider
	if rs[0].RealRun != nil {
		t.header = append(t.header, ">slowdown from", ">to", ">VmPin differs")
		source = fmt.Sprintf("provider %s, %g x the time, median of %d", rs[0].Provider, rs[0].Scale, rs[0].Pairs)
	}
	if s := rs[0].Sharing; s != nil {
		t.header = append(t.header, ">helped", ">waited", ">moves")
		source += fmt.Sprintf(", %d idle cores a node, %s", s.IdleCores, s.IdlePolicy)
	}
	base, costs := map[string]*replay.Result{}, map[float64]bool{}
	for i := range rs {
		if rs[i].Cost > 0 {
			costs[rs[i].Cost] = true
		}
		if rs[i].Policy == replay.LeavePinned {
			base[scope(&rs[i])] = &rs[i]
		}
	}
	for i := range rs {
		r, b := &rs[i], base[scope(&rs[i])]
		if len(asked) > 0 && !slices.Contains(asked, r.Policy) {
			continue
		}
		peakSaved, avgSaved := "", ""
		if b != nil && b != r {
			peakSaved = change(float64(r.PeakPinnedBytes), float64(b.PeakPinnedBytes))
			avgSaved = change(r.AvgPinnedBytes, b.AvgPinnedBytes)
		}
		cells := []string{policyName(r, costs), scope(r), mem.FormatBytes(uint64(r.PeakPinnedBytes)), peakSaved, mem.FormatBytes(uint64(r.AvgPinnedBytes)), avgSaved,
			strconv.FormatInt(r.FirstRegs, 10), strconv.FormatInt(r.LateUses(), 10), strconv.FormatInt(r.HelperRegs, 10), strconv.FormatInt(r.WastedRegs, 10),
			formatNs(r.StallNs), formatNs(r.RunNs), report.Number(r.Slowdown, "%.4f"), report.Share(r.Err05), report.Share(r.Err5), report.Number(r.CapturedAvg, "%.3f"), report.Number(r.CapturedPeak, "%.3f")}
		if r.RealRun != nil {
			cells = append(cells, fmt.Sprintf("%.4f", r.SlowdownMin), fmt.Sprintf("%.4f", r.SlowdownMax), fmt.Sprintf("%d pages", r.VMDiffPages))
		}
		if s := r.Sharing; s != nil {
			cells = append(cells, formatNs(s.HelpedNs), formatNs(s.HelperWaitNs), strconv.FormatInt(s.HelperMoves, 10))
		}
		t.add(cells...)
	}
	fmt.Fprintf(e.Stdout, "%s: %s mode, %s timeline, %s\n", rs[0].Trace, rs[0].Mode, rs[0].Timeline, source)
	if regime != "" {
		fmt.Fprintf(e.Stdout, "  helpers: %s\n", regime)
	}
	if err := t.write(e.Stdout, "  "); err != nil {
		return err
	}
	_, err := fmt.Fprintln(e.Stdout)
	return err
}

// policyName names a policy, and its cost if there are results of several.
func policyName(r *replay.Result, costs map[float64]bool) string {
	if len(costs) > 1 && r.Cost > 0 {
		return r.Policy + " " + share(r.Cost)
	}
	return r.Policy
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
