package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os/exec"

	"pinwheel/internal/machine"
	"pinwheel/internal/measure"
	"pinwheel/internal/settings"
	"pinwheel/internal/signals"
	"pinwheel/internal/tools/command"
	"pinwheel/internal/tools/compare"
	"pinwheel/internal/tools/launch"
	"pinwheel/internal/version"
)

// comparison are the options of run that compare.
type comparison struct {
	Compare bool `help:"Run the job with the transport's registration cache, with none, and with Pinwheel, in turn. Print what each takes, and a verdict."`
	Rounds  *int `placeholder:"N" help:"With --compare: how many times in each of the three ways. Default: 6, the fewest for a 95 % interval."`
	JSON    bool `name:"json" help:"With --compare: print one JSON object."`
}

func (c comparison) check() error {
	switch {
	case c.Rounds != nil && !c.Compare:
		return command.Usagef("--rounds goes with --compare")
	case c.Rounds != nil && *c.Rounds < 1:
		return command.Usagef("--rounds must be 1 or more")
	case c.JSON && !c.Compare:
		return command.Usagef("--json goes with --compare")
	}
	return nil
}

// compare runs the comparison that the options ask for.
func (c *runCmd) compare(e *command.Env, r launch.Request, s settings.Settings) error {
	if err := c.comparison.check(); err != nil {
		return err
	}
	switch {
	case s.Disable:
		return command.Usagef("--compare compares Pinwheel, which is disabled")
	case c.KeepCaches:
		return command.Usagef("--compare turns the transport's caches on and off itself, without --keep-caches")
	case c.Report != "" || s.Stats != "n":
		return command.Usagef("--compare makes use of PINWHEEL_STATS; ask for a report in another run")
	}
	rounds := measure.FewestRounds
	if c.Rounds != nil {
		rounds = *c.Rounds
	}
	job := compare.Job{Request: r}
	ctx, end := signals.Context(context.Background())
	defer end() // by the signal, if one came
	runs, stopped := job.Rounds(ctx, compare.Options{Modes: compare.Modes, Rounds: rounds,
		Say: func(line string) { e.Note("%s", line) }})
	if summary, ok := compare.Summarize(runs); ok {
		if err := c.print(e, r, runs, summary, stopped); err != nil {
			return err
		}
	}
	switch {
	case stopped == nil:
		return nil
	case errors.Is(stopped, exec.ErrNotFound) || errors.Is(stopped, fs.ErrNotExist):
		return cantStart(stopped)
	case errors.Is(stopped, compare.ErrInterrupted):
		e.Note("%v; %d of %d rounds were finished", stopped, len(runs)/len(compare.Modes), rounds)
		return nil
	}
	return stopped
}

// print prints the comparison of the rounds that were finished.
func (c *runCmd) print(
	e *command.Env, r launch.Request, runs []compare.Run, summary compare.Summary, stopped error,
) error {
	if !c.JSON {
		return summary.WriteText(e.Stdout)
	}
	why := ""
	if stopped != nil {
		why = stopped.Error()
	}
	out := json.NewEncoder(e.Stdout)
	return out.Encode(struct {
		Command []string        `json:"command"`
		Version string          `json:"version"`
		Machine machine.Machine `json:"machine"`
		Runs    []compare.Run   `json:"runs"`
		Summary compare.Summary `json:"summary"`
		Beaten  []compare.Mode  `json:"beaten_by"` // modes
		Verdict []string        `json:"verdict"`
		Stopped string          `json:"stopped,omitempty"` // why there are no more rounds
	}{r.Command, version.String(), machine.This(), runs, summary, summary.BeatenBy(), summary.Verdict(), why})
}
