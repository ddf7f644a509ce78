package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os/exec"

	"pinwheel/internal/command"
	"pinwheel/internal/compare"
	"pinwheel/internal/launch"
	"pinwheel/internal/machine"
	"pinwheel/internal/settings"
	"pinwheel/internal/version"
)

// comparison are the options of run that compare.
type comparison struct {
	Compare bool `help:"Run the job with the transport's registration cache, with none, and with Pinwheel, in turn. Print what each takes, and a verdict."`
	Rounds  *int `placeholder:"N" help:"With --compare: how many times in each of the three ways. Default: 6, the fewest for a 95 % interval."`
	JSON    bool `name:"json" help:"With --compare: print one JSON object."`
}

// defaultRounds are the fewest for an interval of 95 % by ranks.
const defaultRounds = 6

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
	rounds := defaultRounds
	if c.Rounds != nil {
		rounds = *c.Rounds
	}
	job := compare.Job{Request: r}
	runs, err := job.Rounds(compare.Options{Rounds: rounds, Say: func(line string) { e.Note("%s", line) }})
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return cantStart(err)
		}
		return err
	}
	summary, _ := compare.Summarize(runs) // all rounds are whole
	if !c.JSON {
		return summary.WriteText(e.Stdout)
	}
	out := json.NewEncoder(e.Stdout)
	return out.Encode(struct {
		Command []string        `json:"command"`
		Version string          `json:"version"`
		Machine machine.Machine `json:"machine"`
		Runs    []compare.Run   `json:"runs"`
		Summary compare.Summary `json:"summary"`
		Verdict []string        `json:"verdict"`
	}{r.Command, version.String(), machine.This(), runs, summary, summary.Verdict()})
}
