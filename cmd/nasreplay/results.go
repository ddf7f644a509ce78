package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"pinwheel/internal/machine"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/version"
	"pinwheel/lab/replay/report"
)

type resultsCmd struct {
	Out    string        `short:"o" default:"results" help:"Directory for README.md, virtual.jsonl and figures/. Its subdirectory traces/ has the default traces."`
	Costs  command.Names `default:"rdma-like,uring" help:"Cost models to report: ${costs}, or files. The figures use the first."`
	Readme string        `placeholder:"FILE" help:"Document whose section of results to update. Default: README.md beside DIR, if it has such a section."`
	Rank   int           `default:"0" help:"Rank that the figures of memory over time show."`
	Traces []string      `arg:"" optional:"" name:"trace" help:"Traces (.pwt). Default: all of DIR/traces."`
}

func (resultsCmd) Help() string {
	return `Replays every trace under every policy in virtual time and writes the report: the comparison with the paper, goals, predictions,
window sensitivity, task aggregation and pinned memory over time. It takes about a minute. SOURCE_DATE_EPOCH sets the date.

Example:
  nasreplay results --out results`
}

func (c *resultsCmd) Run(e *command.Env) error {
	o := report.Options{Traces: c.Traces, OutDir: c.Out, Machine: machine.This(), Version: version.String(), Date: reportDate(), Rank: c.Rank}
	if c.Rank < 0 {
		return command.Usagef("--rank must not be negative")
	}
	readme := filepath.Join(c.Out, "README.md")
	if err := outfile.Check(readme); err != nil {
		return err
	}
	beside := filepath.Join(c.Out, "..", "README.md")
	switch {
	case c.Readme != "":
		if err := report.CheckDocument(c.Readme); err != nil { // before a minute of work
			return command.Usagef("--readme: %w", err)
		}
		o.Document = c.Readme
	case report.CheckDocument(beside) == nil:
		o.Document = beside
	}
	if len(o.Traces) == 0 {
		dir := filepath.Join(c.Out, "traces")
		names, err := fs.Glob(os.DirFS(dir), "*.pwt") // not filepath.Glob: the directory may have a [ in its name
		if err != nil || len(names) == 0 {
			return command.Usagef("there are no traces in %s: name some", dir)
		}
		for _, name := range names {
			o.Traces = append(o.Traces, filepath.Join(dir, name))
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
	_, err = fmt.Fprintf(e.Stdout, "%s written\n", readme)
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
