package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pinwheel/internal/chart"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/report"
	"pinwheel/trace"
)

type plotCmd struct {
	model
	oneCost
	Kind   string        `default:"memory" enum:"memory,errors,savings" help:"Figure to draw: ${enum}."`
	Policy command.Names `placeholder:"NAME" help:"Policies to draw. Default: those of results/."`
	Rank   int           `default:"0" help:"Draw the memory of this rank."`
	From   time.Duration `help:"Draw memory from this time of the run."`
	To     time.Duration `help:"Draw memory until this time of the run."`
	Out    string        `short:"o" default:"." help:"Directory for the figures, or the file of a single one (.svg, or - for standard output)."`
	Traces []string      `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (plotCmd) Help() string {
	return `memory draws the pinned memory of one rank over time, one file for each trace. errors draws the distribution of prediction errors,
and savings the pinned memory that every policy saves, in one file each.

Examples:
  nasreplay plot --out figures results/traces/*.pwt
  nasreplay plot --policy leave-pinned,pinwheel --rank 3 --from 2s --to 2.5s lu.B.4.pwt
  nasreplay plot --kind savings --costs uring results/traces/*.pwt`
}

func (c *plotCmd) Run(e *command.Env) error {
	if err := checkPolicies(c.Policy); err != nil {
		return err
	}
	if c.From < 0 || c.To < 0 || c.To > 0 && c.To <= c.From {
		return command.Usagef("--from %v and --to %v are no stretch of time", c.From, c.To)
	}
	if c.Kind != "memory" && (c.From != 0 || c.To != 0 || c.Rank != 0) {
		return command.Usagef("--from, --to and --rank are for --kind memory")
	}
	if c.toFile() && c.Kind == "memory" && len(c.Traces) > 1 {
		return command.Usagef("--out %s is one file, and there would be %d figures (give a directory)", c.Out, len(c.Traces))
	}
	o, err := c.options(c.Cost)
	if err == nil && c.toFile() {
		err = outfile.Check(c.Out)
	}
	if err != nil {
		return err
	}
	o.Policies = c.Policy
	if c.Kind == "memory" {
		eachTrace(e, c.Traces, func(f *trace.File) error { return c.memory(e, f, c.forTrace(o, f)) })
		return nil
	}
	return c.summary(e, o)
}

// summary draws one figure of all traces.
func (c *plotCmd) summary(e *command.Env, o replay.Options) error {
	policies := c.Policy
	if len(policies) == 0 && c.Kind == "errors" {
		policies = report.Predictors()
	} else if len(policies) == 0 {
		policies = report.ChartPolicies()
	}
	o.Policies = policies
	if c.Kind == "savings" && !slices.Contains(policies, replay.LeavePinned) {
		o.Policies = append([]string{replay.LeavePinned}, policies...)
	}
	var runs []*report.Run
	eachTrace(e, c.Traces, func(f *trace.File) error {
		r, err := report.Replay(context.Background(), f, c.forTrace(o, f))
		if err == nil {
			runs = append(runs, r)
		}
		return err
	})
	if len(runs) == 0 {
		return nil // each has been complained about
	}
	if c.Kind == "savings" {
		return c.write(e, "savings.svg", report.SavingsFigure(runs, policies))
	}
	return c.write(e, "errors.svg", report.ErrorFigure(runs))
}

func (c *plotCmd) memory(e *command.Env, f *trace.File, o replay.Options) error {
	if _, err := pickRanks(f, []int{c.Rank}); err != nil {
		return err
	}
	o.SeriesFromNs, o.SeriesToNs = int64(c.From), int64(c.To)
	fig, err := report.MemoryFigure(context.Background(), f, c.Rank, o)
	if errors.Is(err, report.ErrPastEnd) {
		return command.AsUsage(err)
	}
	if err != nil {
		return err
	}
	return c.write(e, "memory-"+fileName(f.Header().Program)+".svg", fig)
}

// toFile reports whether --out names a file, not a directory.
func (c *plotCmd) toFile() bool {
	if info, err := os.Stat(c.Out); err == nil || outfile.ToStdout(c.Out) {
		return err != nil || !info.IsDir()
	}
	return filepath.Ext(c.Out) == ".svg"
}

func (c *plotCmd) write(e *command.Env, name string, fig *chart.Figure) error {
	path := filepath.Join(c.Out, name)
	if c.toFile() {
		path = c.Out
	}
	err := outfile.Write(path, fig.WriteSVG)
	if err != nil || outfile.ToStdout(path) {
		return err
	}
	_, err = fmt.Fprintln(e.Stdout, path)
	return err
}

// fileName keeps what a program's name has of letters, digits, points and dashes.
func fileName(program string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, program)
}
