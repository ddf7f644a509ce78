package main

import (
	"errors"
	"os"
	"path/filepath"

	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/launch"
	"pinwheel/internal/tools/record"
)

type recordCmd struct {
	Out     string `short:"o" default:"trace/" placeholder:"DIR/%r.pwt" help:"Traces to write, one for each rank. %h stands for the host, %p for the process, %r for the rank, %j for the job. A directory stands for DIR/%r.pwt. Directories that are missing are made. Default: trace/%r.pwt."`
	Merged  string `placeholder:"FILE.pwt" help:"Trace of all ranks. Directories that are missing are made. Default: the program's name, in the same directory."`
	Merge   bool   `default:"true" negatable:"" help:"Merge the ranks' traces when the job has ended."`
	Force   bool   `help:"Replace existing traces."`
	Program string `placeholder:"NAME" help:"Name of the merged trace, if it is not the name of the command."`
	job
}

func (recordCmd) Help() string {
	return `Runs a job as pinwheel run does. Every rank records its communication into its own trace. When the job has ended, record merges these
traces into one, which nasreplay can replay under every policy. MPI numbers the ranks that MPI_Comm_spawn starts from 0 again: their
traces are 2-0.pwt, 2-1.pwt and so on, and they get a merged trace of their own. All nodes must see the directory. If a job was killed,
record uses its traces as far as they go.

Examples:
  pinwheel record -- mpirun -n 4 ./app
  pinwheel record -o traces/%r.pwt --policy leave-pinned -- srun -n 64 ./app input && nasreplay compare traces/app.pwt
  pinwheel record --no-merge -o /scratch/run7.%h.%p.pwt -- mpiexec.hydra -n 8 ./app`
}

func (c *recordCmd) Run(e *command.Env) error {
	r, _, err := c.request(e)
	if err != nil {
		return err
	}
	program := c.Program
	if program == "" {
		program = launch.ProgramOf(r.Command, r.Environ)
	}
	rec, err := record.New(c.Out, c.Merged, program, c.Force)
	if err != nil {
		return command.AsUsage(err)
	}
	r.Settings = append(r.Settings, "PINWHEEL_RECORD="+rec.Pattern())
	p, err := c.plan(e, r)
	if err != nil {
		return err
	}
	if p.Plain != "" {
		return cantStart(p.Exec()) // nothing will be recorded
	}
	if err := rec.Prepare(); err != nil {
		return err
	}
	state, err := p.Run()
	if err != nil {
		return cantStart(err)
	}
	if c.Merge {
		c.merge(e, rec)
	} else {
		e.Note("recorded into %s; put the files together by nasreplay merge", rec.Pattern())
	}
	launch.EndAs(state)
	return nil
}

// merge reports what was recorded; the status stays that of the job.
func (c *recordCmd) merge(e *command.Env, rec *record.Run) {
	res, err := rec.Merge()
	if errors.Is(err, record.ErrNothing) && len(res.Started) == 0 {
		e.Note("%v: unless a line above says why, the job uses no MPI that Pinwheel knows, "+
			"ended before recording began, or its nodes don't share the directory", err)
		return
	}
	if err != nil {
		e.Note("%v", err)
	}
	if res.Path != "" {
		tell(e, res, "")
	}
	for _, started := range res.Started {
		tell(e, started, " that were started by others")
	}
}

// tell reports one merged trace; whose says of which ranks it is, if not of all.
func tell(e *command.Env, res record.Result, whose string) {
	switch n := len(res.Torn); {
	case n == 1:
		e.Note("%v", res.Torn[0])
	case n > 1:
		e.Note("%d traces were cut off, as if their ranks were killed; the first: %v", n, res.Torn[0])
	}
	if res.LeftOut != "" {
		e.Note("not in the trace: %s", res.LeftOut)
	}
	if res.Files < res.Ranks {
		e.Note("recorded %d calls of %d ranks%s of %s into %s; nasreplay compare needs the traces of all %d",
			res.Records, res.Files, whose, res.Program, shortest(res.Path), res.Ranks)
		return
	}
	e.Note("recorded %d calls of %d ranks%s of %s; now type: nasreplay compare %s", res.Records, res.Files, whose, res.Program, shortest(res.Path))
}

// shortest returns a path as a person in this directory would type it.
func shortest(path string) string {
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(dir, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}
