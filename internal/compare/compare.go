package compare

import "fmt"

// Options are for Rounds.
type Options struct {
	Rounds int
	Say    func(line string) // progress
}

// Rounds runs the job in every mode, once in each round, and returns all runs. It stops at the first run that
// fails, which the error tells of in one line.
func (j Job) Rounds(o Options) (runs []Run, err error) {
	for round := range o.Rounds {
		for _, m := range Order(round) {
			run, err := j.Run(m, round)
			if err != nil {
				return runs, err
			}
			runs = append(runs, run)
			if run.Failed != "" {
				return runs, fmt.Errorf("the job failed with %s in round %d: %s", m, round+1, run.Failed)
			}
			o.Say(fmt.Sprintf("round %d of %d, %s: %.2f s, %s pinned, %s of processor time", round+1, o.Rounds, m, run.Seconds,
				Bytes(run.AvgPinnedBytes), Seconds(run.CPUNs)))
		}
	}
	return runs, nil
}
