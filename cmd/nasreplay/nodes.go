package main

import (
	"context"
	"fmt"
	"path/filepath"

	"pinwheel/internal/machine"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/version"
	"pinwheel/lab/replay/report"
)

type nodesCmd struct {
	Out    string `short:"o" default:"results" help:"Directory for nodes.md, nodes.jsonl and figures/."`
	Traces string `placeholder:"DIR" help:"Directory of the traces. Default: DIR/traces in --out."`
	Costs  string `default:"rdma-like" help:"Cost model of registration: one of ${costs}, or a file."`
	To     int    `default:"4096" help:"Scale to this many ranks at most."`
}

func (nodesCmd) Help() string {
	return `Writes the report on full nodes: helpers that share idle cores under every idle policy, several tasks on a node, and scaling to
thousands of ranks. It takes some minutes. SOURCE_DATE_EPOCH sets the date.

Example:
  nasreplay nodes --out results`
}

func (c *nodesCmd) Run(e *command.Env) error {
	if c.To < 16 || c.To > mostRanks {
		return command.Usagef("--to %d: must be from 16 to %d", c.To, mostRanks)
	}
	o := report.NodesOptions{
		Traces: c.Traces, OutDir: c.Out, Machine: machine.This(), Version: version.String(), Date: reportDate(), MostRanks: c.To,
	}
	if o.Traces == "" {
		o.Traces = filepath.Join(c.Out, "traces")
	}
	page := filepath.Join(c.Out, "nodes.md")
	if err := outfile.Check(page); err != nil {
		return err
	}
	var err error
	if o.Costs, err = loadCosts(c.Costs); err != nil {
		return err
	}
	bar := progress(e, int64(o.Steps()), "nodes")
	o.Step = func(what string) {
		bar.Describe(what)
		_ = bar.Add(1)
	}
	err = report.WriteNodes(context.Background(), o)
	_ = bar.Finish()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s written\n", page)
	return err
}
