package main

import (
	"fmt"
	"path/filepath"

	"pinwheel/comm/files/report"
	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
)

type filesCmd struct {
	Out string `short:"o" default:"results/files" help:"Directory for figures.md and the figures."`
}

func (filesCmd) Help() string {
	return `Serves files over RDMA in virtual time, as "Memory Management Strategies for Data Serving with RDMA" (HotI
2007) did: with static buffers, dynamic registration, pipelining and sendfile. It draws the figures of that paper again,
and says which of its findings they show. It takes some seconds.

Example:
  nasreplay files --out results/files`
}

func (c *filesCmd) Run(e *command.Env) error {
	page := filepath.Join(c.Out, report.File)
	if err := outfile.Check(page); err != nil {
		return err
	}
	bar := progress(e, int64(report.Figures()), "figures")
	err := report.Write(c.Out, func() { _ = bar.Add(1) })
	_ = bar.Finish()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s written\n", page)
	return err
}
