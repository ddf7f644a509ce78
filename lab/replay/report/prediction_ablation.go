package report

import (
	"fmt"

	"pinwheel/lab/replay"
	"pinwheel/lab/replay/perturb"
	"pinwheel/predictor"
)

func (w *predictionWriter) planAblation() {
	add := func(path string, job func(replay.Job) replay.Job) {
		w.plan(predictionRow{Part: partAblation, Condition: nothing, path: path, job: job})
		for _, idea := range predictor.Ideas() {
			w.plan(predictionRow{
				Part: partAblation, Condition: idea.Name, path: path, job: job, options: func(o *replay.Options) { o.Without = idea.Idea },
			})
		}
	}
	for _, path := range w.o.Traces {
		add(path, nil)
	}
	for _, made := range madeUp() { // which some ideas are for
		add("", func(replay.Job) replay.Job { return made })
	}
}

// madeUp is traffic that no policy can foresee.
func madeUp() []replay.Job {
	return []replay.Job{perturb.Random(perturbSeed), perturb.Drifting(perturbSeed)}
}

// nothing is the condition of an ablation that leaves out no idea.
const nothing = "nothing"

// ablationRow is all traces, and the made-up jobs, without one idea.
type ablationRow struct {
	Without, Captured, Late, HelperTime string
	Worst                               robustCells
	Made                                []string
}

// MadeNames are the columns of made-up jobs.
func (predictionData) MadeNames() (names []string) {
	for _, made := range madeUp() {
		names = append(names, made.Program())
	}
	return names
}

// ablation returns a row for each idea, after one of all of them together.
func (w *predictionWriter) ablation() (rows []ablationRow) {
	for _, condition := range w.conditions(partAblation) {
		row := ablationRow{Without: condition}
		var traces []*predictionRow
		var saved, late, helperTime float64
		for _, r := range w.under(partAblation, condition) {
			x := r.run.of(replay.Pinwheel)
			if r.path == "" {
				row.Made = append(row.Made, fmt.Sprintf("%.3f, %.2f %%, %s", captured(x), 100*x.LateShare(), Number(x.Slowdown, "%.4f")))
				continue
			}
			traces = append(traces, r)
			saved += captured(x)
			late += x.LateShare()
			helperTime += float64(x.HelperCPUNs) / float64(x.RunNs*int64(r.run.ranks()))
		}
		n := float64(len(traces))
		row.Captured, row.Late = fmt.Sprintf("%.3f", saved/n), fmt.Sprintf("%.2f %%", 100*late/n)
		row.HelperTime, row.Worst = fmt.Sprintf("%.2f %%", 100*helperTime/n), worst(traces, replay.Pinwheel)
		rows = append(rows, row)
	}
	return rows
}
