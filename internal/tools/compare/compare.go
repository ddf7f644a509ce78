package compare

import (
	"context"
	"errors"
	"fmt"
)

// ErrInterrupted: the context of Rounds has ended.
var ErrInterrupted = errors.New("interrupted")

// Options are for Rounds.
type Options struct {
	Modes  []Mode // at least Modes
	Rounds int
	Say    func(line string) // progress
}

// Rounds runs the job in each of some modes, once in each round. It stops at the first run that fails, and when ctx
// ends: a run that is under way then counts for nothing, and is waited for, as whoever ends ctx ends the job too. It
// always returns the runs that were measured; an error says in one line why there are no more.
func (j Job) Rounds(ctx context.Context, o Options) (runs []Run, err error) {
	for round := range o.Rounds {
		for _, m := range Order(o.Modes, round) {
			run, err := j.Run(m, round)
			if ctx.Err() != nil {
				return runs, fmt.Errorf("%w in round %d of %d, with %s", ErrInterrupted, round+1, o.Rounds, m)
			}
			if err != nil {
				return runs, err
			}
			if run.Failed != "" {
				return runs, fmt.Errorf("the job failed with %s in round %d: %s", m, round+1, run.Failed)
			}
			runs = append(runs, run)
			o.Say(fmt.Sprintf("round %d of %d, %s: %.2f s, %s pinned, %s of processor time", round+1, o.Rounds, m, run.Seconds,
				Bytes(run.AvgPinnedBytes), Seconds(run.CPUNs)))
		}
	}
	return runs, nil
}
