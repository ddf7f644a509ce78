package main

import (
	"os"

	"pinwheel/internal/outfile"
	"pinwheel/internal/tools/command"
	"pinwheel/mem"
	"pinwheel/trace"
)

type importCmd struct {
	Out       string   `short:"o" required:"" placeholder:"FILE.pwt" help:"Trace to write. The file appears once it is complete."`
	Program   string   `placeholder:"NAME" help:"Name of the program that ran. Default: the name of --out without its extension."`
	Source    string   `placeholder:"TEXT" help:"Where the trace comes from: machine, compiler and so on."`
	AcceptCut bool     `help:"Accept files whose last line is cut off, and ignore that line."`
	Force     bool     `help:"Replace an existing file."`
	CSV       []string `arg:"" name:"csv" help:"The recorder's CSV of every rank, plain or compressed with zstd."`
}

func (importCmd) Help() string {
	return `All files must come from one run. If a file is wrong, import prints one line with its name and line number, and writes nothing.

Examples:
  nasreplay import --out ft.B.4.pwt ft.B.4/rank*.csv.zst
  nasreplay import --out run7.pwt --accept-cut --source "node12, MVAPICH2 2.3" rank0.csv rank1.csv`
}

func (c *importCmd) Run(e *command.Env) error {
	if err := checkOut(c.Out, c.Force, c.CSV); err != nil {
		return err
	}
	if c.Program == "" && outfile.ToStdout(c.Out) {
		return command.Usagef("--out %s has no name for the program: give --program NAME", c.Out)
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
	bar := progress(e, total, "import")
	res, err := trace.Import(c.Out, c.CSV, trace.ImportOptions{Program: c.Program, Source: c.Source, AcceptCut: c.AcceptCut,
		Progress: func(n int) { _ = bar.Add(n) }})
	_ = bar.Finish()
	if err != nil {
		return err
	}
	for _, at := range res.Cut {
		e.Note("%s: last line was cut off and left out", at)
	}
	return wrote(e, c.Out, "%d records of %d files, %s", res.Records, len(c.CSV), mem.FormatBytes(uint64(res.Bytes)))
}

// checkOut refuses to replace a regular file unasked, or one of the inputs even then.
func checkOut(path string, force bool, inputs []string) error {
	have, err := os.Stat(path)
	if err != nil || !have.Mode().IsRegular() {
		return nil // nothing is replaced
	}
	for _, name := range inputs {
		if st, err := os.Stat(name); err == nil && os.SameFile(st, have) {
			return command.Usagef("--out %s is the input %s", path, name)
		}
	}
	if !force && !outfile.ToStdout(path) {
		return command.Usagef("%s exists (give --force to replace it)", path)
	}
	return nil
}
