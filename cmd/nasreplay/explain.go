package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"pinwheel/internal/chart"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/explain"
	"pinwheel/lab/replay/report"
	"pinwheel/mem"
	"pinwheel/trace"
)

type explainCmd struct {
	format
	model
	oneCost
	profiled
	Rank   int      `default:"0" help:"With --region: the rank."`
	Region int      `placeholder:"N" help:"Show the timeline of this region: prediction, deadline, registration, need and release of every use."`
	Top    int      `default:"12" help:"Rows of the list of regions, those with which most was missed first; 0 for all. Only for one trace."`
	Figure string   `placeholder:"FILE.svg" help:"Draw the same as SVG; - for standard output."`
	Traces []string `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (explainCmd) Help() string {
	var b strings.Builder
	for c := range explain.Cause(explain.Causes) {
		fmt.Fprintf(&b, "  %-15s %s\n", c, c.Doc())
	}
	return `Replays traces under policy pinwheel and says where the possible saving went: what leave-pinned pins on average and the clairvoyant
oracle does not. Each column is a share of that; together they are what was missed, 1 - captured_avg.

` + b.String() + `
A page counts once, for the first of these causes. Negative shares are won. A line says what was saved at which cost: of the
budget that --cost is, and on what.

Examples:
  nasreplay explain results/traces/*.pwt
  nasreplay explain --costs uring --timeline recorded ft.B.4.pwt
  nasreplay explain --profile ft.profile ft.B.4.pwt
  nasreplay explain --region 2 --rank 1 --figure region2.svg ft.B.4.pwt
  nasreplay explain --json ft.B.4.pwt | jq .causes.margin`
}

func (c *explainCmd) Run(e *command.Env) error {
	o, err := c.options(c.Cost)
	if err == nil {
		err = c.profiled.check()
	}
	switch {
	case err != nil:
		return err
	case c.Region < 0 || c.Rank < 0 || c.Top < 0:
		return command.Usagef("--region, --rank and --top must not be negative")
	case c.Region > 0 && len(c.Traces) > 1:
		return command.Usagef("--region is for one trace")
	case c.Region == 0 && c.Rank != 0:
		return command.Usagef("--rank is for --region")
	case c.Figure != "":
		if err := outfile.Check(c.Figure); err != nil {
			return err
		}
	}
	var xs []*explain.Explanation
	var caveats [][]string // of each
	eachTrace(e, c.Traces, func(f *trace.File) error {
		o := c.forTrace(o, f)
		r, err := c.regime(&o, f)
		if err != nil {
			return err
		}
		if err := c.begin(e, &o, f); err != nil {
			return err
		}
		unseen, err := unseen(f)
		if err != nil {
			return err
		}
		x, err := explainTrace(e, f, o)
		if err == nil {
			cost, ranksNs := x.Cost(), float64(x.Result.RunNs)*float64(len(f.Ranks()))
			xs = append(xs, x)
			caveats = append(caveats, append([]string{"helpers: " + r, cost.Line(ranksNs)}, unseen...))
		}
		return err
	})
	if len(xs) == 0 {
		return nil // each has been complained about
	}
	if c.Region > 0 {
		return c.region(e, xs[0])
	}
	return c.losses(e, xs, caveats)
}

// explainTrace replays a trace with a progress bar.
func explainTrace(e *command.Env, f *trace.File, o replay.Options) (*explain.Explanation, error) {
	var records int64
	for _, r := range f.Ranks() {
		records += int64(f.Records(r))
	}
	bar := progress(e, 3*records, f.Header().Program)
	defer func() { _ = bar.Finish() }()
	if e.Terminal {
		o.Progress = func(records int64) { _ = bar.Add64(records) }
	}
	return explain.Trace(context.Background(), o, f)
}

// losses prints where the savings of traces went, and what is to be known of each replay.
func (c *explainCmd) losses(e *command.Env, xs []*explain.Explanation, caveats [][]string) error {
	t := table{header: []string{"trace", ">captured avg", ">missed"}}
	regions := table{header: []string{"rank", ">region", ">size", ">uses", ">late", ">missed"}}
	for cause := range explain.Cause(explain.Causes) {
		t.header = append(t.header, ">"+cause.String())
		regions.header = append(regions.header, ">"+cause.String())
	}
	for _, x := range xs {
		if c.JSON {
			if err := writeJSON(e.Stdout, x); err != nil {
				return err
			}
		}
		t.add(append([]string{x.Result.Trace, report.Number(x.Result.CapturedAvg, "%.4f"), points(x.Missed.Sum())}, shareCells(&x.Missed)...)...)
	}
	if err := c.draw(e, func() *chart.Figure { return report.LossFigure(xs) }); err != nil || c.JSON {
		return err
	}
	if c.CSV {
		return plain(&t).writeCSV(e.Stdout, true)
	}
	r := &xs[0].Result
	fmt.Fprintf(e.Stdout, "missed of the possible saving, in %%: policy %s, %s timeline, costs of %s\n", r.Policy, r.Timeline, r.Provider)
	if err := t.write(e.Stdout, "  "); err != nil {
		return err
	}
	for i, lines := range caveats {
		for _, line := range lines {
			if len(xs) > 1 {
				line = xs[i].Result.Trace + ": " + line
			}
			fmt.Fprintln(e.Stdout, line)
		}
	}
	if len(xs) > 1 {
		return nil
	}
	for i := range xs[0].Regions {
		g := &xs[0].Regions[i]
		if g.ID == 0 || c.Top > 0 && len(regions.rows) == c.Top {
			continue
		}
		cells := []string{strconv.Itoa(g.Rank), fmt.Sprint(uint64(g.ID)), mem.FormatBytes(g.Bytes), strconv.Itoa(g.Uses), strconv.Itoa(g.Late),
			points(g.MissedShare.Sum())}
		regions.add(append(cells, shareCells(&g.MissedShare)...)...)
	}
	fmt.Fprintf(e.Stdout, "\nregions with which most was missed, %d of %d\n", len(regions.rows), len(xs[0].Regions))
	return regions.write(e.Stdout, "  ")
}

// plain is a table whose header is that of CSV.
func plain(t *table) *table {
	p := &table{rows: t.rows}
	for _, h := range t.header {
		p.header = append(p.header, strings.ReplaceAll(strings.TrimPrefix(h, ">"), " ", "_"))
	}
	return p
}

// points prints a share in percent.
func points(share float64) string { return fmt.Sprintf("%.2f", math.Round(1e4*share)/100+0) } // + 0: no -0.00

func shareCells(s *explain.Shares) (cells []string) {
	for _, v := range s {
		cells = append(cells, points(v))
	}
	return cells
}

// region prints the timeline of a region.
func (c *explainCmd) region(e *command.Env, x *explain.Explanation) error {
	id := mem.RegionID(c.Region)
	cycles, err := x.Cycles(c.Rank, id)
	if err != nil {
		return command.AsUsage(err)
	}
	if err := c.draw(e, func() *chart.Figure { return report.RegionFigure(x, c.Rank, id, cycles) }); err != nil {
		return err
	}
	if c.JSON {
		for i := range cycles {
			if err := writeJSON(e.Stdout, &cycles[i]); err != nil {
				return err
			}
		}
		return nil
	}
	t := table{header: []string{">use", ">need", ">end", ">released after", ">of idle", ">gaps known", ">expected", ">deadline", ">registered", ">ready",
		"by", ">wasted", ">pinned idle", "mostly"}}
	for i := range cycles {
		t.add(cycleCells(cycles, i)...)
	}
	if c.CSV {
		return plain(&t).writeCSV(e.Stdout, true)
	}
	fmt.Fprintf(e.Stdout, "%s, rank %d, region %d: expected, deadline, registered and ready are relative to the need\n", x.Result.Trace, c.Rank, id)
	return t.write(e.Stdout, "  ")
}

func cycleCells(cycles []explain.Cycle, i int) []string {
	c := &cycles[i]
	released, idle, gaps, expected, deadline, registered, ready, by, wasted := "", "", "", "", "", "", "", "kept", ""
	if i > 0 {
		idle = formatNs(c.NeedNs - cycles[i-1].EndNs)
		if c.GoneNs > 0 {
			released = formatNs(c.ReleaseNs - cycles[i-1].EndNs)
		}
	}
	if c.Predicted {
		gaps, expected, deadline = strconv.Itoa(c.Gaps), signedNs(c.ExpectedNs-c.NeedNs), signedNs(c.DeadlineNs-c.NeedNs)
	}
	if c.Gated {
		deadline = "gated"
	}
	if c.RegisterNs > 0 {
		registered, ready, by = signedNs(c.RegisterNs-c.NeedNs), signedNs(c.ReadyNs-c.NeedNs), "helper"
	}
	if c.Missed {
		by = "need"
	}
	if c.Wasted > 0 {
		wasted = strconv.Itoa(c.Wasted)
	}
	at := func(ns int64) string { return fmt.Sprintf("%.6f s", float64(ns)/1e9) }
	return []string{strconv.Itoa(c.Use), at(c.NeedNs), at(c.EndNs), released, idle, gaps, expected, deadline, registered, ready, by, wasted,
		formatNs(c.IdleNs), c.Why}
}

// signedNs prints a time that may be before or after another one.
func signedNs(ns int64) string {
	if ns < 0 {
		return "-" + formatNs(-ns)
	}
	return "+" + formatNs(ns)
}

func (c *explainCmd) draw(e *command.Env, figure func() *chart.Figure) error {
	if c.Figure == "" {
		return nil
	}
	if err := outfile.Write(c.Figure, figure().WriteSVG); err != nil || outfile.ToStdout(c.Figure) || c.JSON || c.CSV {
		return err
	}
	_, err := fmt.Fprintln(e.Stdout, c.Figure)
	return err
}
