package report

import (
	"fmt"
	"math"

	"pinwheel/lab/replay"
	"pinwheel/lab/replay/explain"
	"pinwheel/schedule"
)

// The targets on the dedicated timeline with the costs of RDMA.
const (
	leastMeanCaptured = 0.94 // in a first run
	// mostSlowdown is what the budget allows, and a tenth of that: a use is late before it is paid for.
	mostSlowdown = 1 + 1.1*schedule.DefaultCost
)

// leastCaptured are targets of captured_avg.
var leastCaptured = map[string]float64{"bt.B.4": 0.95, "lu.B.4": 0.95, "cg.C.4": 0.94, "sp.B.4": 0.94}

func (w *predictionWriter) planRuns() {
	for _, path := range w.o.Traces {
		for i := range w.o.Costs {
			for _, t := range []replay.Timeline{replay.Dedicated, replay.Recorded} {
				w.plan(predictionRow{Part: partRuns, path: path, costs: &w.o.Costs[i], options: func(o *replay.Options) { o.Timeline = t }})
			}
		}
	}
}

func (w *predictionWriter) planCauses() {
	for _, path := range w.o.Traces {
		w.plan(predictionRow{Part: partCauses, path: path})
	}
}

func (w *predictionWriter) planErrors() {
	for _, path := range w.o.Traces {
		w.plan(predictionRow{Part: partErrors, path: path, options: func(o *replay.Options) { o.Policies = append(o.Policies, replay.Paper) }})
	}
}

// firstRunRow is a trace under all costs and timelines.
type firstRunRow struct {
	Trace        string
	Least        string // target of captured_avg
	Runs         []goal // of each cost model: dedicated, recorded
	PeakOfOracle string // on the dedicated timeline with the first costs
}

// firstRuns returns a row for each trace, and the means.
func (w *predictionWriter) firstRuns() (rows []firstRunRow) {
	var sums []float64
	for _, r := range w.of(partRuns) {
		x := r.run.of(replay.Pinwheel)
		if n := len(rows); n == 0 || rows[n-1].Trace != r.program() {
			row := firstRunRow{Trace: r.program(), Least: "-", PeakOfOracle: peakOf(r.run)}
			if least := leastCaptured[r.program()]; least > 0 {
				row.Least = fmt.Sprintf("%.2f", least)
			}
			rows = append(rows, row)
		}
		row := &rows[len(rows)-1]
		g := goal{CapturedAvg: Number(x.CapturedAvg, "%.3f"), Late: lateCell(x), Slowdown: Number(x.Slowdown, "%.4f")}
		if len(row.Runs) == 0 { // the one that has targets
			mark(&g.CapturedAvg, captured(x) < leastCaptured[row.Trace])
			mark(&g.Slowdown, *x.Slowdown > mostSlowdown)
		}
		if k := len(row.Runs); k == len(sums) {
			sums = append(sums, 0)
		}
		sums[len(row.Runs)] += captured(x)
		row.Runs = append(row.Runs, g)
	}
	mean := firstRunRow{Trace: "mean", Least: fmt.Sprintf("%.2f", leastMeanCaptured), PeakOfOracle: ""}
	for i, sum := range sums {
		v := sum / float64(len(rows))
		g := goal{CapturedAvg: fmt.Sprintf("%.3f", v)}
		mark(&g.CapturedAvg, i == 0 && v < leastMeanCaptured)
		mean.Runs = append(mean.Runs, g)
	}
	return append(rows, mean)
}

// captured is captured_avg; NaN where nothing can be saved.
func captured(r *replay.Result) float64 {
	if r.CapturedAvg == nil {
		return math.NaN()
	}
	return *r.CapturedAvg
}

func lateCell(r *replay.Result) string { return fmt.Sprintf("%.2f %%", 100*r.LateShare()) }

// peakOf is the peak as a multiple of the oracle's.
func peakOf(r *Run) string { return fmt.Sprintf("%.2f", peakRatio(r)) }

func peakRatio(r *Run) float64 {
	return float64(r.of(replay.Pinwheel).PeakPinnedBytes) / float64(max(r.of(replay.Oracle).PeakPinnedBytes, 1))
}

// causeRow is where the saving of a trace went.
type causeRow struct {
	Trace, Captured, Missed string
	Cells                   []string
}

// CauseNames are the columns of the table of causes.
func (predictionData) CauseNames() (names []string) {
	for c := range explain.Cause(explain.Causes) {
		names = append(names, c.String())
	}
	return names
}

// CauseDocs say what the columns are.
func (predictionData) CauseDocs() (docs []string) {
	for c := range explain.Cause(explain.Causes) {
		docs = append(docs, fmt.Sprintf("**%s**: %s", c, c.Doc()))
	}
	return docs
}

func (w *predictionWriter) causes() (rows []causeRow) {
	for _, r := range w.of(partCauses) {
		row := causeRow{Trace: r.program(), Captured: Number(r.x.Result.CapturedAvg, "%.3f"), Missed: fmt.Sprintf("%.1f", 100*r.x.Missed.Sum())}
		for _, share := range r.x.Missed {
			row.Cells = append(row.Cells, fmt.Sprintf("%.1f", math.Round(1000*share)/10+0)) // + 0: no -0.0
		}
		rows = append(rows, row)
	}
	return rows
}

// predictionErrors is the table of prediction errors.
func (w *predictionWriter) predictionErrors() (rows []errorRow) {
	for _, r := range w.of(partErrors) {
		row := errorRow{Trace: r.program(), Cells: r.own.cells()}
		for _, policy := range []string{replay.Paper, replay.Pinwheel} {
			x := r.run.of(policy)
			row.Cells = append(row.Cells, Share(x.Err05), Share(x.Err5))
		}
		rows = append(rows, row)
	}
	return rows
}
