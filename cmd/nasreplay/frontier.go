package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pinwheel/internal/machine"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/version"
	"pinwheel/lab/replay/report"
	"pinwheel/trace"
)

type frontierCmd struct {
	JSON bool `name:"json" help:"Print one JSON object per line: a policy in a trace."`
	model
	Cost     percents `default:".05%,.1%,.2%,.5%,1%,2%" help:"What policy pinwheel may cost a rank, as shares of its time: the points of its curve."`
	SVG      string   `name:"svg" placeholder:"FILE" help:"Draw the figure; - for standard output."`
	Out      string   `short:"o" placeholder:"DIR" help:"Write frontier.md, frontier.jsonl and figures/frontier.svg there."`
	Document string   `placeholder:"FILE" help:"With --out: a document whose section of the frontier to update, too."`
	Traces   []string `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (frontierCmd) Help() string {
	return `Replays traces under policies ` + strings.Join(report.FrontierPolicies(), ", ") + `, and sets the
memory that each saves against the time that it costs. Policy pinwheel is a curve: it saves more the more it may cost
(PINWHEEL_COST). "saved" is a share of what leave-pinned pins; "captured" one of what the oracle saves of it, which
knows the future. The figure has a panel for each trace.

Examples:
  nasreplay frontier results/traces/*.pwt
  nasreplay frontier --cost .1%,1% --costs uring --svg frontier.svg ft.B.4.pwt lu.B.4.pwt
  nasreplay frontier --helper-share .5% --json results/traces/*.pwt | jq 'select(.policy == "pinwheel")'
  nasreplay frontier --out results --document README.md results/traces/*.pwt`
}

func (c *frontierCmd) Run(e *command.Env) error {
	o, err := c.options(c.Cost...)
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return err
	}
	o.Policies = report.FrontierPolicies()
	fr := report.Frontier{
		Machine: machine.This(), Version: version.String(), Date: reportDate(), Conditions: report.Conditions(&o),
	}
	done := 0
	eachTrace(e, c.Traces, func(f *trace.File) error {
		o := c.forTrace(o, f)
		regime, err := c.regime(&o, f)
		if err != nil {
			return err
		}
		rs, err := replayTrace(e, f, o)
		if err != nil {
			return err
		}
		done++
		fr.Points = append(fr.Points, report.FrontierPoints(rs)...)
		if !slices.Contains(fr.Helpers, regime) {
			fr.Helpers = append(fr.Helpers, regime)
		}
		return nil
	})
	switch {
	case done == 0: // each has been complained about
		return nil
	case c.Out != "":
		if done < len(c.Traces) {
			return nil // a report is of all
		}
		if err := fr.Write(c.Out, c.Document); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.Stdout, "%s written\n", filepath.Join(c.Out, "frontier.md"))
		return err
	}
	return c.print(e, &fr)
}

// check reports flags that don't go together, and files that can't be written, before there is work done.
func (c *frontierCmd) check() error {
	switch {
	case c.Out != "" && (c.JSON || c.SVG != ""):
		return command.Usagef("--out writes data and figure, too: without --json and --svg")
	case c.Out != "":
		if c.Document != "" {
			if err := report.CheckFrontierDocument(c.Document); err != nil {
				return command.Usagef("--document: %w", err)
			}
		}
		return outfile.Check(filepath.Join(c.Out, "frontier.md"))
	case c.Document != "":
		return command.Usagef("--document is for --out")
	case c.JSON && outfile.ToStdout(c.SVG):
		return command.Usagef("--json and --svg - both go to standard output")
	case c.SVG != "":
		return outfile.Check(c.SVG)
	}
	return nil
}

// print prints the points, or draws them, or both.
func (c *frontierCmd) print(e *command.Env, fr *report.Frontier) error {
	if c.SVG != "" {
		if err := outfile.Write(c.SVG, fr.Figure().WriteSVG); err != nil || outfile.ToStdout(c.SVG) {
			return err
		}
	}
	if c.JSON {
		for i := range fr.Points {
			if err := writeJSON(e.Stdout, &fr.Points[i]); err != nil {
				return err
			}
		}
		return nil
	}
	fmt.Fprintln(e.Stdout, fr.Conditions)
	for _, line := range fr.Helpers {
		fmt.Fprintf(e.Stdout, "  helpers: %s\n", line)
	}
	t := table{header: []string{"trace", "policy", ">slowdown", ">saved", ">at the peak", ">captured"}}
	for i := range fr.Points {
		p := &fr.Points[i]
		name := ""
		if i == 0 || fr.Points[i-1].Trace != p.Trace {
			name = p.Program()
		}
		t.add(append([]string{name}, pointCells(p)...)...)
	}
	if err := t.write(e.Stdout, "  "); err != nil {
		return err
	}
	return c.printMeans(e, fr)
}

func pointCells(p *report.FrontierPoint) []string {
	return []string{p.Name(), fmt.Sprintf("%.5f", p.Slowdown), report.Percent(p.SavedAvg), report.Percent(p.SavedPeak),
		report.Share(p.CapturedAvg)}
}

// printMeans prints the means of several traces, and where the figure is.
func (c *frontierCmd) printMeans(e *command.Env, fr *report.Frontier) error {
	t := table{header: []string{"policy", ">slowdown", ">saved", ">at the peak", ">captured", ">greatest slowdown"}}
	for _, m := range report.FrontierMeans(fr.Points) {
		t.add(append(pointCells(&m.FrontierPoint), fmt.Sprintf("%.5f", m.Worst))...)
	}
	if len(c.Traces) > 1 {
		fmt.Fprintln(e.Stdout, "\nmeans")
		if err := t.write(e.Stdout, "  "); err != nil {
			return err
		}
	}
	if c.SVG == "" {
		return nil
	}
	_, err := fmt.Fprintln(e.Stdout, c.SVG)
	return err
}
