package main

import (
	"pinwheel/internal/tools/command"
	"pinwheel/trace"
)

type mergeCmd struct {
	Out    string   `short:"o" required:"" placeholder:"FILE.pwt" help:"Trace to write. The file appears once it is complete."`
	Force  bool     `help:"Replace an existing file."`
	Traces []string `arg:"" name:"trace" help:"Traces (.pwt) of the same run."`
}

func (mergeCmd) Help() string {
	return `Merges traces that were recorded one per rank. The commands info, compare and plot need one trace of all ranks.

Example:
  nasreplay merge --out run7.pwt run7.rank*.pwt`
}

func (c *mergeCmd) Run(e *command.Env) error {
	if err := checkOut(c.Out, c.Force, c.Traces); err != nil {
		return err
	}
	h, torn, err := trace.Merge(c.Out, c.Traces)
	if err != nil {
		return err
	}
	for _, t := range torn {
		e.Note("%v", t)
	}
	return wrote(e, c.Out, "%s, %d ranks, %d files", h.Program, h.Ranks, len(c.Traces))
}
