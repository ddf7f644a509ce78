package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/schollz/progressbar/v3"

	"pinwheel/internal/machine"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/version"
	"pinwheel/lab/replay/report"
)

type predictionCmd struct {
	Out    string        `short:"o" placeholder:"DIR" help:"Directory for prediction.md and prediction.jsonl. Default: the page goes to standard output."`
	JSON   bool          `name:"json" help:"Print the results, one JSON object per line, instead of the page."`
	Part   command.Names `placeholder:"NAME" help:"Parts of the page: ${prediction_parts}. Default: all."`
	Costs  command.Names `default:"rdma-like,uring" help:"Cost models: ${costs}, or files. All parts but the runs use the first."`
	Again  string        `placeholder:"DIR" help:"Directory of second runs of the same jobs, which profiles are learned from. Default: traces-again beside the directory of the first trace."`
	Traces []string      `arg:"" name:"trace" help:"Traces (.pwt)."`
}

func (predictionCmd) Help() string {
	return `Replays traces in virtual time, on all processors, and reports how near policy pinwheel comes to the clairvoyant oracle: every trace
against its targets, where the rest went, the errors of predictions, what each idea is worth, and what the policy costs where
nothing can be foreseen. It takes some minutes. SOURCE_DATE_EPOCH sets the date.

Examples:
  nasreplay prediction --out results results/traces/*.pwt
  nasreplay prediction --part ablation results/traces/*.pwt
  nasreplay prediction --part robust --json ft.B.4.pwt`
}

func (c *predictionCmd) Run(e *command.Env) error {
	o := report.PredictionOptions{
		Traces: c.Traces, OutDir: c.Out, Parts: c.Part, Machine: machine.This(), Version: version.String(), Date: reportDate(),
		Parallel: runtime.GOMAXPROCS(0),
	}
	if o.Again = c.Again; o.Again == "" {
		o.Again = filepath.Join(filepath.Dir(c.Traces[0]), "..", "traces-again")
	}
	for _, part := range c.Part {
		if !slices.Contains(report.PredictionParts(), part) {
			return command.Usagef("unknown part %q (choose from %s)", part, strings.Join(report.PredictionParts(), ", "))
		}
	}
	page := filepath.Join(c.Out, "prediction.md")
	switch {
	case c.Out != "" && (c.JSON || len(c.Part) > 0):
		return command.Usagef("--out writes all parts as a page: without --json and --part")
	case c.Out != "":
		if err := outfile.Check(page); err != nil {
			return err
		}
	}
	if len(o.Parts) == 0 {
		o.Parts = report.PredictionParts()
	}
	for _, name := range c.Costs {
		costs, err := loadCosts(name)
		if err != nil {
			return err
		}
		o.Costs = append(o.Costs, costs)
	}
	var bar *progressbar.ProgressBar
	o.Begin = func(steps int) { bar = progress(e, int64(steps), "prediction") }
	o.Step = func() { _ = bar.Add(1) }
	defer func() {
		if bar != nil {
			_ = bar.Finish()
		}
	}()
	if c.Out != "" {
		if err := report.WritePrediction(context.Background(), o); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.Stdout, "%s written\n", page)
		return err
	}
	text, data, err := report.Prediction(context.Background(), o)
	if err != nil {
		return err
	}
	if c.JSON {
		text = data
	}
	_, err = e.Stdout.Write(text)
	return err
}
