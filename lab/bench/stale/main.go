// Stale proves that no registration is used after its memory changed: the
// matrix of mechanisms and kinds of change, races, and costs. It is what make
// test-stale, make bench-watch and make results-stale run.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"pinwheel/internal/tools/command"
)

type cli struct {
	Matrix  matrixCmd  `cmd:"" help:"Judge every mechanism and kind of change by the bytes that move; write one JSON line for each."`
	Race    raceCmd    `cmd:"" help:"Use addresses while other threads free them; write one JSON line."`
	Table   tableCmd   `cmd:"" help:"Make the tables of results/stale from result files."`
	Cost    costCmd    `cmd:"" help:"Measure what each mechanism costs; write one JSON line for each quantity."`
	Paper   paperCmd   `cmd:"" help:"Set costs beside those that Wyckoff and Wu give of their kernel module."`
	Hold    holdCmd    `cmd:"" hidden:"" help:"Watch this process until it is killed."`
	Measure measureCmd `cmd:"" hidden:"" help:"Measure in one process."`
	Cell    cellCmd    `cmd:"" hidden:"" help:"Judge one cell."`
}

func main() { command.Main(spec()) }

func spec() command.Spec {
	return command.Spec{
		Name: "stale", Description: "Proofs that a registration is never used after its memory changed.",
		Declarations: func(string) any { return &cli{} },
	}
}

type cellCmd struct {
	Device    string `arg:""`
	Mechanism string `arg:""`
	Kind      string `arg:""`
	MPI       bool
}

// Run judges one cell in a process of its own: some changes can't be undone.
func (c cellCmd) Run() error {
	if c.MPI {
		if err := startMPI(); err != nil {
			return fmt.Errorf("initialise Open MPI with its patcher: %w", err)
		}
		defer endMPI()
	}
	for _, k := range kinds() {
		if k.Name == c.Kind {
			v, chosen, err := judge(c.Device, c.Mechanism, k)
			if err != nil {
				return err
			}
			return json.NewEncoder(os.Stdout).Encode(Cell{Verdict: v, Mechanism: chosen})
		}
	}
	return fmt.Errorf("no kind of change is called %q", c.Kind)
}
