package main

import (
	"fmt"
	"strconv"
	"strings"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay/report"
	"pinwheel/mem"
	"pinwheel/trace"
	"pinwheel/trace/summary"
)

type infoCmd struct {
	format
	Ranks     numbers      `placeholder:"N" help:"Ranks to report. Default: all, with details of the first."`
	Threshold command.Size `default:"16K" help:"Ignore buffers below this size."`
	Top       int          `default:"12" help:"Rows per list, largest buffers first; 0 for all."`
	Traces    []string     `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (infoCmd) Help() string {
	return `A period is the time from the start of one use of a buffer to the start of its next use. Jitter is the distance between the 10 %
and 90 % quantiles of the periods, relative to the median. "cpu" periods are in processor time, as a dedicated core would see them.

Examples:
  nasreplay info results/traces/*.pwt
  nasreplay info --ranks 0,3 --top 0 --threshold 1 mg.C.4.pwt
  nasreplay info --json ft.B.4.pwt | jq '.regions[] | select(.period.jitter < 0.01)'`
}

func (c *infoCmd) Run(e *command.Env) error {
	if c.Threshold < 0 || c.Top < 0 {
		return command.Usagef("--top must not be negative")
	}
	first := true
	eachTrace(e, c.Traces, func(f *trace.File) error {
		ranks, err := pickRanks(f, c.Ranks)
		if err != nil {
			return err
		}
		var all []*summary.Rank
		for _, r := range ranks {
			s, err := summary.Read(f, r, summary.Options{ThresholdBytes: uint64(c.Threshold)})
			if err != nil {
				return err
			}
			all = append(all, s)
		}
		switch {
		case c.JSON:
			for _, s := range all {
				if err := writeJSON(e.Stdout, s); err != nil {
					return err
				}
			}
		case c.CSV:
			t := regionCSV(all)
			err = t.writeCSV(e.Stdout, first)
			first = false
		default:
			err = c.print(e, f, all)
		}
		return err
	})
	return nil
}

func (c *infoCmd) print(e *command.Env, f *trace.File, all []*summary.Rank) error {
	h := f.Header()
	fmt.Fprintf(e.Stdout, "%s: %d ranks, buffers of %d bytes and more were recorded, clock %s\n", h.Program, h.Ranks, h.ThresholdBytes, h.Clock)
	if h.Source != "" {
		fmt.Fprintf(e.Stdout, "recorded from %s\n", h.Source)
	}
	over := table{header: []string{">rank", ">records", ">wall", ">processor", ">communicators", ">call sites", ">buffers", ">pages in all"}}
	for _, s := range all {
		over.add(strconv.Itoa(s.Rank), strconv.FormatUint(s.Records, 10), formatNs(s.WallNs), formatNs(s.CPUNs), strconv.Itoa(s.Comms),
			strconv.Itoa(len(s.Sites)), strconv.Itoa(len(s.Regions)), mem.FormatBytes(s.CoveredBytes))
	}
	fmt.Fprintf(e.Stdout, "\ncall sites and buffers of %s and more\n", mem.FormatBytes(uint64(c.Threshold)))
	if err := over.write(e.Stdout, "  "); err != nil {
		return err
	}
	details := all
	if len(c.Ranks) == 0 && len(details) > 1 {
		details = details[:1]
	}
	for _, s := range details {
		if err := c.details(e, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *infoCmd) details(e *command.Env, s *summary.Rank) error {
	ops := table{header: []string{"operation", ">records", ">bytes", ">smallest", ">largest"}}
	for _, o := range s.Ops {
		ops.add(o.Op, strconv.FormatUint(o.Records, 10), mem.FormatBytes(o.Bytes), mem.FormatBytes(o.MinBytes), mem.FormatBytes(o.MaxBytes))
	}
	regions := table{header: []string{"buffer", ">size", ">uses", ">sites", ">in use", ">period", ">jitter", ">cpu period", ">jitter"}}
	for _, g := range top(s.Regions, c.Top) {
		regions.add(append([]string{g.Addr, mem.FormatBytes(g.Bytes), strconv.FormatUint(g.Uses, 10), strconv.Itoa(g.Sites), report.Percent(g.UsedShare)},
			periods(g.Period, g.CPUPeriod)...)...)
	}
	sites := table{header: []string{"call site", "operation", ">size", ">uses", ">buffers", ">period", ">jitter", ">cpu period", ">jitter"}}
	for _, x := range top(s.Sites, c.Top) {
		size := mem.FormatBytes(x.MaxBytes)
		if x.MinBytes != x.MaxBytes {
			size = mem.FormatBytes(x.MinBytes) + " to " + size
		}
		sites.add(append([]string{x.Stack, x.Op, size, strconv.FormatUint(x.Uses, 10), strconv.Itoa(x.Regions)}, periods(x.Period, x.CPUPeriod)...)...)
	}
	fmt.Fprintf(e.Stdout, "\nrank %d\n", s.Rank)
	for _, list := range []struct {
		table
		all int
	}{{ops, len(s.Ops)}, {regions, len(s.Regions)}, {sites, len(s.Sites)}} {
		if len(list.rows) == 0 {
			continue
		}
		if err := list.write(e.Stdout, "  "); err != nil {
			return err
		}
		if more := list.all - len(list.rows); more > 0 {
			fmt.Fprintf(e.Stdout, "  ... and %d more (--top 0 shows all)\n", more)
		}
		fmt.Fprintln(e.Stdout)
	}
	return nil
}

func top[T any](rows []T, n int) []T {
	if n == 0 || n > len(rows) {
		return rows
	}
	return rows[:n]
}

// periods prints a wall-clock and a processor-time period.
func periods(ps ...summary.Period) []string {
	var cells []string
	for _, p := range ps {
		if p.N == 0 {
			cells = append(cells, "-", "-")
			continue
		}
		cells = append(cells, formatNs(p.MedianNs), formatJitter(p.Jitter))
	}
	return cells
}

// formatJitter prints a ratio that may be far above 1.
func formatJitter(v float64) string {
	if v >= 10 {
		return fmt.Sprintf("%.0f x", v)
	}
	return report.Percent(v)
}

func regionCSV(all []*summary.Rank) *table {
	t := &table{header: strings.Split("trace,rank,addr,bytes,uses,sites,used_share,period_median_ns,period_jitter,cpu_period_median_ns,cpu_period_jitter", ",")}
	for _, s := range all {
		for _, g := range s.Regions {
			t.add(s.Trace, strconv.Itoa(s.Rank), g.Addr, strconv.FormatUint(g.Bytes, 10), strconv.FormatUint(g.Uses, 10), strconv.Itoa(g.Sites),
				formatFloat(g.UsedShare), strconv.FormatInt(g.Period.MedianNs, 10), formatFloat(g.Period.Jitter),
				strconv.FormatInt(g.CPUPeriod.MedianNs, 10), formatFloat(g.CPUPeriod.Jitter))
		}
	}
	return t
}

func formatFloat(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
