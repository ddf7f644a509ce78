package main

import (
	"fmt"
	"path/filepath"

	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/results/papers"
)

type papersCmd struct {
	Out string `short:"o" default:"results" help:"Directory with the raw data, in which papers.md is written."`
}

func (papersCmd) Help() string {
	return `Sets every figure, table and claim of five papers beside what we have. Figures of ours are read from the raw data that other
commands have written.

Example:
  nasreplay papers --out results`
}

func (c *papersCmd) Run(e *command.Env) error {
	page, err := papers.Page(c.Out)
	if err != nil {
		return err
	}
	path := filepath.Join(c.Out, papers.File)
	err = outfile.WriteText(path, page)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Stdout, "%s written\n", path)
	return err
}
