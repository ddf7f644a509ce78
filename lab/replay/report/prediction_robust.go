package report

import (
	"cmp"
	"fmt"
	"slices"

	"pinwheel/lab/replay"
	"pinwheel/lab/replay/perturb"
	"pinwheel/schedule"
)

// mostRobustSlowdown is what policy pinwheel may cost where nothing can be foreseen: half as much again as its budget.
const mostRobustSlowdown = 1 + 1.5*schedule.DefaultCost

// perturbSeed makes the report the same every time.
const perturbSeed = 1

func (w *predictionWriter) planRobust() {
	add := func(r predictionRow) {
		r.Part = partRobust
		r.options = func(o *replay.Options) { o.Policies = append(o.Policies, replay.Paper) }
		w.plan(r)
	}
	for _, kind := range perturb.Kinds() {
		for _, path := range w.o.Traces {
			add(predictionRow{Condition: string(kind), path: path, job: func(j replay.Job) replay.Job { return perturb.New(j, kind, perturbSeed) }})
		}
	}
	for i, path := range w.o.Traces {
		if other := w.o.Traces[(i+1)%len(w.o.Traces)]; other != path {
			add(predictionRow{Condition: "another program's profile", path: path, teacher: w.teacher(other)})
		}
	}
	for _, path := range w.o.Traces {
		for _, other := range w.o.Traces {
			if other != path && programOf(other) == programOf(path) {
				add(predictionRow{Condition: "the profile of another class", path: path, teacher: w.teacher(other)})
			}
		}
	}
	for _, made := range madeUp() {
		add(predictionRow{Condition: made.Program(), job: func(replay.Job) replay.Job { return made }})
	}
}

// robustRow is one condition: the worst of all traces.
type robustRow struct {
	Condition, Runs, Captured string
	Paper, Pinwheel           robustCells
}

// robustCells are the worst slowdown and the worst late share of a policy, each with the trace that has it.
type robustCells struct{ Slowdown, Late string }

// robust returns a row for each condition.
func (w *predictionWriter) robust() (rows []robustRow) {
	for _, c := range w.conditions(partRobust) {
		runs := w.under(partRobust, c)
		var sum float64
		for _, r := range runs {
			sum += captured(r.run.of(replay.Pinwheel))
		}
		rows = append(rows, robustRow{
			Condition: c, Runs: fmt.Sprint(len(runs)), Captured: fmt.Sprintf("%.3f", sum/float64(len(runs))),
			Paper: worst(runs, replay.Paper), Pinwheel: worst(runs, replay.Pinwheel),
		})
	}
	return rows
}

func worst(runs []*predictionRow, policy string) (c robustCells) {
	slowest := slices.MaxFunc(runs, func(a, b *predictionRow) int {
		return cmp.Compare(*a.run.of(policy).Slowdown, *b.run.of(policy).Slowdown)
	})
	latest := slices.MaxFunc(runs, func(a, b *predictionRow) int {
		return cmp.Compare(a.run.of(policy).LateShare(), b.run.of(policy).LateShare())
	})
	x, y := slowest.run.of(policy), latest.run.of(policy)
	c.Slowdown, c.Late = Number(x.Slowdown, "%.4f"), lateCell(y)
	if policy == replay.Pinwheel {
		mark(&c.Slowdown, *x.Slowdown > mostRobustSlowdown)
	}
	if len(runs) > 1 {
		c.Slowdown += " " + slowest.program()
		c.Late += " " + latest.program()
	}
	return c
}

// predictionData is what the template sees. Parts that were not asked for are nil.
type predictionData struct {
	*PredictionOptions
	First    []firstRunRow
	Profiles []profileRow
	Causes   []causeRow
	Errors   []errorRow
	Ablation []ablationRow
	Robust   []robustRow
}

func (w *predictionWriter) data() predictionData {
	d := predictionData{PredictionOptions: w.o}
	computePart(w, partRuns, &d.First, w.firstRuns)
	computePart(w, partProfile, &d.Profiles, w.profiles)
	computePart(w, partCauses, &d.Causes, w.causes)
	computePart(w, partErrors, &d.Errors, w.predictionErrors)
	computePart(w, partAblation, &d.Ablation, w.ablation)
	computePart(w, partRobust, &d.Robust, w.robust)
	return d
}

// computePart computes the rows of a part, if it was asked for.
func computePart[Row any](w *predictionWriter, part string, to *[]Row, rows func() []Row) {
	if w.has(part) {
		*to = rows()
	}
}
