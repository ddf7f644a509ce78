package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/jobreport"
	"pinwheel/internal/tools/launch"
)

type reportCmd struct {
	HTML  string   `placeholder:"FILE" help:"Write a page with charts over time into FILE (.html) instead. Directories of FILE that are missing are made."`
	Files []string `arg:"" name:"report" help:"Reports of single ranks of one job (.json)."`
}

func (reportCmd) Help() string {
	return `Merges the reports that the ranks of a job wrote (--stats=FILE.json) and prints one report of all ranks.

Examples:
  pinwheel run --stats=stats.%r.json -- mpirun -n 4 ./app && pinwheel report stats.*.json
  pinwheel report --html app.html stats.*.json`
}

func (c *reportCmd) Run(e *command.Env) error {
	if c.HTML == "" {
		return jobreport.Write(e.Stdout, c.Files)
	}
	if err := outfile.Check(c.HTML); err != nil {
		return command.Usagef("--html: %w", err)
	}
	return writeFile(c.HTML, c.Files, jobreport.WriteHTML)
}

// runAndReport starts a job, waits for its end and prints one report of all
// ranks to standard error or into a file. If other processes share the directory, the last to end
// does that.
func runAndReport(e *command.Env, p launch.Plan, dir jobreport.Dir, file string) error {
	state, err := p.Run()
	if err != nil {
		_ = dir.Remove() // nothing was started
		return cantStart(err)
	}
	if !dir.Last() {
		launch.EndAs(state)
	}
	err = writeReport(dir, file)
	if errors.Is(err, jobreport.ErrNone) {
		err = fmt.Errorf("%w: unless a line above says why, they ended without MPI_Finalize, "+
			"can't see this directory, or use no MPI that Pinwheel knows", err)
	}
	switch {
	case errors.Is(err, errUnwritten):
		e.Note("%v; the reports of the ranks are left for pinwheel report %s/*.json", err, shortest(dir.Keep()))
	case err != nil:
		e.Note("%v", err)
		fallthrough
	default:
		if err := dir.Remove(); err != nil {
			e.Note("%v", err)
		}
	}
	launch.EndAs(state)
	return nil
}

// errUnwritten: there is a report, and no way to write it.
var errUnwritten = errors.New("the report can't be written")

func writeReport(dir jobreport.Dir, file string) error {
	files, err := dir.Files()
	if err != nil {
		return err
	}
	if file == "y" {
		return jobreport.Write(os.Stderr, files)
	}
	write := jobreport.Write
	if filepath.Ext(file) == ".html" {
		write = jobreport.WriteHTML
	}
	return writeFile(file, files, write)
}

// writeFile writes the report of the ranks' files, unless none of them is one.
func writeFile(file string, files []string, write func(io.Writer, []string) error) error {
	var text bytes.Buffer
	bad := write(&text, files)
	if text.Len() == 0 {
		return bad
	}
	err := outfile.Write(file, func(w io.Writer) error {
		_, err := text.WriteTo(w)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", errUnwritten, err)
	}
	return bad
}
