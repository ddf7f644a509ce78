package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pinwheel/mem"
	"pinwheel/trace"
)

type importCmd struct {
	Out       string   `required:"" placeholder:"FILE.pwt" help:"Trace to write; it appears when it is whole."`
	Program   string   `placeholder:"NAME" help:"What was run. Default: the name of --out without its extension."`
	Source    string   `placeholder:"TEXT" help:"Machine, compiler and whatever else should be known of the run."`
	AcceptCut bool     `help:"Take files whose last line is cut off, without that line."`
	Force     bool     `help:"Replace an existing file."`
	CSV       []string `arg:"" name:"csv" help:"The recorder's CSV of every rank, plain or compressed with zstd."`
}

func (importCmd) Help() string {
	return `All files must be of one run. Any fault is one line naming file and line, and nothing is written.

Examples:
  nasreplay import --out ft.B.4.pwt ft.B.4/rank*.csv.zst
  nasreplay import --out run7.pwt --accept-cut --source "node12, MVAPICH2 2.3" rank0.csv rank1.csv`
}

func (c *importCmd) Run(e *env) error {
	if err := checkOut(c.Out, c.Force, c.CSV); err != nil {
		return err
	}
	if c.Program == "" {
		c.Program = trace.ProgramFromPath(c.Out)
	}
	var total int64
	for _, name := range c.CSV {
		st, err := os.Stat(name)
		if err != nil {
			return err
		}
		total += st.Size()
	}
	bar := e.progress(total, "import")
	res, err := trace.Import(c.Out, c.CSV, trace.ImportOptions{Program: c.Program, Source: c.Source, AcceptCut: c.AcceptCut,
		Progress: func(n int) { _ = bar.Add(n) }})
	_ = bar.Finish()
	if err != nil {
		return err
	}
	for _, at := range res.Cut {
		e.note("%s: last line was cut off and left out", at)
	}
	st, err := os.Stat(c.Out)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.stdout, "%s: %d records of %d files, %s\n", c.Out, res.Records, len(c.CSV), mem.FormatBytes(uint64(st.Size())))
	return err
}

// checkOut refuses to replace a file unasked, or one of the inputs even then,
// and to write where there is no directory.
func checkOut(path string, force bool, inputs []string) error {
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); path == "" || err != nil || !st.IsDir() {
		return usagef("--out %s: %s is no directory", path, dir)
	}
	have, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range inputs {
		if st, err := os.Stat(name); err == nil && os.SameFile(st, have) {
			return usagef("--out %s is the input %s", path, name)
		}
	}
	switch {
	case have.IsDir():
		return usagef("--out %s is a directory", path)
	case !force:
		return usagef("%s exists (give --force to replace it)", path)
	}
	return nil
}
