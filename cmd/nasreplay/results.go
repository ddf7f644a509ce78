package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"pinwheel/internal/command"
	"pinwheel/internal/version"
	"pinwheel/replay/report"
)

type resultsCmd struct {
	Out    string   `default:"results" help:"Where README.md, virtual.jsonl and figures/ are written; traces/ below it are the default traces."`
	Costs  names    `default:"rdma-like,uring" help:"Registration costs to report: ${costs}, or files; the first is that of the figures."`
	Readme string   `placeholder:"FILE" help:"Document whose section of results is filled in, if it has one. Default: README.md beside DIR."`
	Rank   int      `default:"0" help:"Rank of the figures of memory over time."`
	Traces []string `arg:"" optional:"" name:"trace" help:"Traces (.pwt). Default: all of DIR/traces."`
}

func (resultsCmd) Help() string {
	return `Replays every trace under every policy in virtual time and writes the report: ours against the paper, goals, predictions,
window sensitivity, task aggregation and pinned memory over time. Takes about a minute. SOURCE_DATE_EPOCH sets the date.

Example:
  nasreplay results --out results`
}

func (c *resultsCmd) Run(e *command.Env) error {
	o := report.Options{Traces: c.Traces, OutDir: c.Out, Machine: report.ThisMachine(), Version: version.String(), Date: reportDate(), Rank: c.Rank}
	if o.Document = c.Readme; o.Document == "" {
		o.Document = filepath.Join(c.Out, "..", "README.md")
	}
	if len(o.Traces) == 0 {
		var err error
		if o.Traces, err = filepath.Glob(filepath.Join(c.Out, "traces", "*.pwt")); err != nil {
			return command.AsUsage(err)
		}
	}
	for _, name := range c.Costs {
		costs, err := loadCosts(name)
		if err != nil {
			return err
		}
		o.Costs = append(o.Costs, costs)
	}
	bar := progress(e, int64(o.Steps()), "results")
	o.Step = func() { _ = bar.Add(1) }
	err := report.Write(context.Background(), o)
	_ = bar.Finish()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s written\n", filepath.Join(c.Out, "README.md"))
	return err
}

// reportDate is today, or what https://reproducible-builds.org/specs/source-date-epoch/ says.
func reportDate() string {
	now := time.Now()
	if s, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		now = time.Unix(s, 0)
	}
	return now.UTC().Format(time.DateOnly)
}
