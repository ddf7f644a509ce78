package main

import (
	"cmp"
	"context"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/metrics"
	"pinwheel/internal/tools/monitor"
)

type metricsCmd struct {
	Textfile string        `placeholder:"FILE" help:"Keep FILE (.prom) up to date until a signal comes, for node_exporter's textfile collector."`
	Listen   string        `placeholder:"unix:/PATH|127.0.0.1:PORT" help:"Serve HTTP on a Unix socket or a loopback port until a signal comes."`
	Once     bool          `help:"Write the metrics once, and end, which is the default without --textfile and --listen."`
	Interval time.Duration `type:"seconds" placeholder:"TIME" help:"With --textfile: how long from one writing to the next. Default: 15s."`
}

func (metricsCmd) Help() string {
	return `Prints what "pinwheel top" shows in the text format of Prometheus. With --textfile or --listen it goes on, in a
process of its own that ranks don't notice, and that may start before the first job and outlive the last one. It sees
the jobs of the user who runs it.

Series have the labels job_id, rank, pid and manager. Counters count since the start of the process; those of ranks
that have ended are gone. The path over HTTP is /metrics. A Unix socket is open for you only; a loopback port is for
everyone on this node. FILE is removed when the command ends.

Examples:
  pinwheel metrics
  pinwheel metrics --textfile /var/lib/prometheus/node-exporter/pinwheel.prom
  pinwheel metrics --listen 127.0.0.1:9400
  pinwheel metrics --listen unix:/run/user/1000/pinwheel.sock`
}

func (c *metricsCmd) Run(e *command.Env) error {
	if err := c.check(); err != nil {
		return err
	}
	g := metrics.Registry(monitor.Node(""))
	switch {
	case c.Listen != "":
		return serve(c.Listen, g)
	case c.Textfile == "":
		return metrics.Write(e.Stdout, g)
	case c.Once:
		return metrics.WriteFile(c.Textfile, g)
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	return metrics.KeepFile(ctx, c.Textfile, g, cmp.Or(c.Interval, 15*time.Second), func(err error) { e.Note("%v", err) })
}

// serve answers scrapes until a signal comes.
func serve(address string, g prometheus.Gatherer) error {
	a, err := metrics.ParseAddress(address)
	if err != nil {
		return command.Usagef("--listen: %w", err)
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	l, err := metrics.Listen(a)
	if err != nil {
		return err
	}
	return metrics.Serve(ctx, l, g)
}

// check finds arguments that contradict each other.
func (c *metricsCmd) check() error {
	switch {
	case c.Textfile != "" && c.Listen != "":
		return command.Usagef("--textfile or --listen, not both")
	case c.Textfile == "" && c.Interval != 0:
		return command.Usagef("--interval goes with --textfile")
	case c.Listen != "" && c.Once:
		return command.Usagef("--once makes no sense with --listen")
	case c.Once && c.Interval != 0:
		return command.Usagef("--interval makes no sense with --once")
	case c.Interval < 0 || c.Interval > 0 && c.Interval < time.Second:
		return command.Usagef("--interval must be 1s or more")
	case c.Textfile == "":
		return nil
	case filepath.Ext(c.Textfile) != ".prom":
		return command.Usagef("--textfile: node_exporter reads files that end in .prom, and %s doesn't", c.Textfile)
	}
	return nil
}
