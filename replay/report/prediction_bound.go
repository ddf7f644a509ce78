package report

import (
	"fmt"
	"os"
	"path/filepath"

	"pinwheel/replay"
)

// planBound judges what predictors of this kind could do, on every trace and every second run.
func (w *predictionWriter) planBound() {
	for _, path := range w.o.Traces {
		again := filepath.Join(w.o.Again, filepath.Base(path))
		for _, p := range []string{path, again} {
			if _, err := os.Stat(p); err != nil && p == again {
				continue // not every job has a second run
			}
			w.plan(predictionRow{Part: partBound, path: p, options: func(o *replay.Options) {
				o.Policies = append(o.Policies, replay.Foreknowing()...)
			}})
		}
	}
}

// boundRow is a run under pinwheel, and under what knows more.
type boundRow struct {
	Trace                         string
	Pinwheel, First, All, Perfect goal
}

// bounds returns a row for each run, and the means over the traces.
func (w *predictionWriter) bounds() (rows []boundRow) {
	mean := boundRow{Trace: "mean of traces/"}
	var sums [4]float64
	n := 0
	for _, r := range w.of(partBound) {
		row := boundRow{Trace: runOf(r.path)}
		isAgain := filepath.Clean(filepath.Dir(r.path)) == filepath.Clean(w.o.Again)
		for i, of := range row.goals() {
			x := r.run.of([]string{replay.Pinwheel, replay.HindsightFirst, replay.Hindsight, replay.Clairvoyant}[i])
			*of = goal{CapturedAvg: Number(x.CapturedAvg, "%.3f"), Late: lateCell(x), Slowdown: Number(x.Slowdown, "%.4f")}
			if !isAgain {
				sums[i] += captured(x)
			}
		}
		if !isAgain {
			n++
		}
		rows = append(rows, row)
	}
	for i, of := range mean.goals() {
		of.CapturedAvg = fmt.Sprintf("%.3f", sums[i]/float64(max(n, 1)))
	}
	return append(rows, mean)
}

func (r *boundRow) goals() [4]*goal { return [4]*goal{&r.Pinwheel, &r.First, &r.All, &r.Perfect} }
