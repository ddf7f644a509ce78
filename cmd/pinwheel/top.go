package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"golang.org/x/term"

	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/monitor"
	"pinwheel/internal/tools/top"
)

type topCmd struct {
	Job      string        `placeholder:"ID" help:"Show this job only. Default: all of yours on this node."`
	Once     bool          `help:"Print one look, and end. So it is without a terminal, unless --interval is given."`
	JSON     bool          `name:"json" help:"Print each look as one JSON object on a line."`
	Interval time.Duration `type:"seconds" placeholder:"TIME" help:"How long from one look to the next. Default: 1s, as often as ranks publish."`
}

func (topCmd) Help() string {
	return `Shows the MPI ranks, and other processes under Pinwheel, that you run on this node: what they have registered, what
their helper threads do and take, how many uses came late, and how good predictions are. It reads shared memory, so
ranks don't notice. A rank is seen from its first message of a quarter of PINWHEEL_THRESHOLD on. Below the ranks there
is a line for each process that has a name at the broker (pinwheel node), and for each that serves files (pinwheel
serve). If there is nothing to see, top says so, and the exit status is 1.

Keys: q quits, left and right choose the column to sort by, r reverses the order; up, down, page up and page down
scroll.

` + top.Legend + `

Fields of --json have the names of the report of a rank (pinwheel run --stats=FILE.json). Counters count since the start of the rank;
null stands for a limit that is not set.

Examples:
  pinwheel top
  pinwheel top --job slurm-4711 --once
  pinwheel top --json --interval 5s | jq -c '.jobs[] | [.job, .pinned_bytes]'
  ssh -t node17 pinwheel top`
}

func (c *topCmd) Run(e *command.Env) error {
	switch {
	case c.Interval < 0 || c.Interval > 0 && c.Interval < minInterval:
		return command.Usagef("--interval must be %v or more", minInterval)
	case c.Once && c.Interval != 0:
		return command.Usagef("--interval makes no sense with --once")
	}
	source := monitor.Node(c.Job)
	first, err := source()
	if err != nil {
		return err
	}
	if first.Empty() {
		e.Note("no process of yours on %s has registered memory under Pinwheel (yet), has a name at a broker, or serves files", first.Host)
		e.Fail()
		return nil
	}
	if c.JSON || c.Once || !isTerminal(os.Stdin) || !isTerminal(os.Stdout) || os.Getenv("TERM") == "dumb" {
		return c.print(e, source, first)
	}
	ctx, end := signals.Context(context.Background())
	defer end()
	return ended(e, top.Show(ctx, os.Stdin, os.Stdout, source, first, cmp.Or(c.Interval, time.Second)))
}

// minInterval keeps a mistyped interval from taking a core.
const minInterval = 100 * time.Millisecond

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// print prints looks until there is nothing to see, or only one if that is what was asked for.
func (c *topCmd) print(e *command.Env, source monitor.Source, l monitor.Look) error {
	width := 0
	if isTerminal(os.Stdout) {
		width, _, _ = term.GetSize(int(os.Stdout.Fd())) // 0 if it doesn't say
	}
	for {
		var err error
		if c.JSON {
			err = json.NewEncoder(e.Stdout).Encode(l)
		} else {
			err = top.Print(e.Stdout, l, width)
		}
		if err != nil || c.Interval == 0 {
			return err
		}
		time.Sleep(c.Interval)
		if l, err = source(); err != nil || l.Empty() {
			return ended(e, err)
		}
	}
}

// ended takes the end of the job for the end of what there is to see.
func ended(e *command.Env, err error) error {
	if errors.Is(err, monitor.ErrNoJob) {
		e.Note("the job has ended")
		return nil
	}
	return err
}
