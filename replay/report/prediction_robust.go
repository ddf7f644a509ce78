package report

import (
	"cmp"
	"fmt"
	"slices"

	"pinwheel/predictor"
	"pinwheel/replay"
	"pinwheel/replay/perturb"
)

// What a policy may cost where nothing can be foreseen.
const (
	mostRobustSlowdown = 1.005
	mostRobustLate     = 0.04
)

// perturbSeed makes the report the same every time.
const perturbSeed = 1

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

// ablationRow is a trace with all ideas, and without each of them.
type ablationRow struct {
	Trace string
	Cells []string
}

// AblationNames are the columns of the table of ideas.
func (predictionData) AblationNames() []string {
	names := []string{"all ideas"}
	for _, idea := range predictor.Ideas() {
		names = append(names, "without "+idea.Name)
	}
	return names
}

// ablation returns a row for each trace, the means, and a row for each made-up job.
func (w *predictionWriter) ablation() (rows []ablationRow) {
	var made []ablationRow
	mean := ablationRow{Trace: "mean"}
	traces := float64(len(w.o.Traces))
	columns := 1 + len(predictor.Ideas())
	sums := make([]struct{ captured, late float64 }, columns)
	for row := range slices.Chunk(w.of(partAblation), columns) {
		out := ablationRow{Trace: row[0].run.program}
		for k, r := range row {
			x := r.run.of(replay.Pinwheel)
			out.Cells = append(out.Cells, ablationCell(captured(x), lateShare(x)))
			if r.path != "" {
				sums[k].captured += captured(x)
				sums[k].late += lateShare(x)
			}
		}
		if row[0].path == "" {
			made = append(made, out)
		} else {
			rows = append(rows, out)
		}
	}
	for _, s := range sums {
		mean.Cells = append(mean.Cells, ablationCell(s.captured/traces, s.late/traces))
	}
	return append(append(rows, mean), made...)
}

func ablationCell(captured, late float64) string {
	return fmt.Sprintf("%.3f, %.2f %%", captured, 100*late)
}

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
	all := w.of(partRobust)
	var conditions []string
	for _, r := range all {
		if !slices.Contains(conditions, r.Condition) {
			conditions = append(conditions, r.Condition)
		}
	}
	for _, c := range conditions {
		var runs []*predictionRow
		var sum float64
		for _, r := range all {
			if r.Condition == c {
				runs = append(runs, r)
				sum += captured(r.run.of(replay.Pinwheel))
			}
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
		return cmp.Compare(lateShare(a.run.of(policy)), lateShare(b.run.of(policy)))
	})
	x, y := slowest.run.of(policy), latest.run.of(policy)
	c.Slowdown, c.Late = Number(x.Slowdown, "%.4f"), lateCell(y)
	if policy == replay.Pinwheel {
		mark(&c.Slowdown, *x.Slowdown > mostRobustSlowdown)
		mark(&c.Late, lateShare(y) > mostRobustLate)
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
	Bounds   []boundRow
	Causes   []causeRow
	Errors   []errorRow
	Ablation []ablationRow
	Robust   []robustRow
}

func (w *predictionWriter) data() predictionData {
	d := predictionData{PredictionOptions: w.o}
	computePart(w, partRuns, &d.First, w.firstRuns)
	computePart(w, partProfile, &d.Profiles, w.profiles)
	computePart(w, partBound, &d.Bounds, w.bounds)
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
