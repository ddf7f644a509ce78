package main

import (
	"context"
	"fmt"

	"pinwheel/internal/tools/command"
	"pinwheel/lab/replay/report"
)

type sharesCmd struct {
	Document string   `required:"" placeholder:"FILE" help:"Document whose tables of helper shares to update."`
	Summary  string   `placeholder:"FILE" help:"Another document, for a summary of them."`
	Costs    string   `default:"rdma-like" help:"Cost model of registration: one of ${costs}, the beginning of such a name, or a file that calibrate wrote."`
	Traces   []string `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (sharesCmd) Help() string {
	return `Replays every trace in virtual time on full nodes, where uses on demand may cost .1, .5, 1 and 2 % of a rank's time, as
PINWHEEL_COST says, and with an idle core for each helper. The tables show what each share saves and costs.

Example:
  nasreplay shares --document results/helper-share.md results/traces/*.pwt`
}

func (c *sharesCmd) Run(e *command.Env) error {
	costs, err := loadCosts(c.Costs)
	if err != nil {
		return err
	}
	bar := progress(e, int64(len(c.Traces)*len(report.HelperShares)), "shares")
	err = report.WriteShares(context.Background(), c.Document, c.Traces, costs, func() { _ = bar.Add(1) })
	_ = bar.Finish()
	if err == nil && c.Summary != "" {
		err = report.WriteShareSummary(c.Summary, c.Document)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s written\n", c.Document)
	return err
}
