package report

import (
	"bytes"
	"embed"
	"fmt"
	"runtime"
	"text/template"

	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/results/papers"
	"pinwheel/trace"
)

//go:embed *.md.tmpl
var templates embed.FS

// readmeData is what the template sees.
type readmeData struct {
	*Options
	Paper  []paperRow
	Goals  []goalRow
	Tables []policyTable
	Errors []errorRow
	Groups []groupRow
	Real   []realRow
	Traces []string
}

// paperRow sets one of the paper's benchmarks beside our trace of it.
type paperRow struct {
	Paper, PaperSaved, PaperOf string
	Trace, Base                string // Base is the peak of leave-pinned, all ranks
	Why                        string
	Rows                       []outcome
}

// outcome is what a policy achieves.
type outcome struct{ Policy, Peak, Avg, Late, Slowdown string }

func outcomeOf(name string, x, base *replay.Result) outcome {
	return outcome{name, Percent(saved(float64(base.PeakPinnedBytes), float64(x.PeakPinnedBytes))), Percent(saved(base.AvgPinnedBytes, x.AvgPinnedBytes)),
		fmt.Sprintf("%.2f %%", 100*x.LateShare()), Number(x.Slowdown, "%.4f")}
}

// goalRow is pinwheel on one trace under one cost model.
type goalRow struct {
	Trace, Costs        string
	Dedicated, Recorded goal
}

// goal is what is to be reached, in bold where it is missed, what is captured
// in the second half, and how busy a helper is meanwhile.
type goal struct{ CapturedAvg, SecondHalf, Late, Slowdown, Busy string }

// The goals of the dedicated timeline.
const (
	goalCaptured = 0.90
	goalSlowdown = mostSlowdown
)

type policyTable struct {
	Trace, Costs string
	Rows         []policyRow
}

type policyRow struct {
	Policy                                                                               string
	Peak, PeakSaved, Avg, AvgSaved, First, Late, Helper, Wasted, Stall, Slowdown, CapAvg string
}

// errorRow is the prediction quality of every predictor on one trace.
type errorRow struct {
	Trace string
	Cells []string // below 0.5 % and below 5 %, for each of predictors
}

type groupRow struct {
	Name         string
	PaperSaved   string
	Policy, Peak string // sum over nodes
	Saved        string
	Most         string // greatest of a node
	Late         string
	Slowdown     string
}

func (w *writer) readme() error {
	real, err := readReal(w.o.OutDir)
	if err != nil {
		return err
	}
	t, err := template.ParseFS(templates, "policies.md.tmpl", "readme.md.tmpl")
	if err != nil {
		return err
	}
	d := readmeData{Options: w.o, Paper: w.paperRows(), Goals: w.goalRows(), Errors: w.errorRows(), Groups: w.groupRows(), Real: realRows(real)}
	for _, c := range w.o.Costs {
		for _, r := range w.dedicated(c.Name) {
			d.Tables = append(d.Tables, tableOf(r))
		}
	}
	for _, path := range w.o.Traces {
		d.Traces = append(d.Traces, trace.ProgramFromPath(path))
	}
	for file, name := range map[string]string{"README.md": "readme.md.tmpl", "policies.md": "policies.md.tmpl"} {
		var b bytes.Buffer
		if err := t.ExecuteTemplate(&b, name, d); err != nil {
			return err
		}
		w.add(file, b.Bytes())
	}
	return nil
}

func (w *writer) paperRows() []paperRow {
	var rows []paperRow
	for _, r := range w.dedicated(w.o.Costs[0].Name) {
		b := benchmarkOf(r.program)
		if b.paper == "" { // aggregation has a table of its own
			continue
		}
		base := r.of(replay.LeavePinned)
		row := paperRow{Paper: b.paper, PaperSaved: Percent(papers.Has("li2011-" + b.paper)), PaperOf: "section 6.2", Trace: r.program, Why: b.why,
			Base: size(float64(base.PeakPinnedBytes))}
		row.Rows = []outcome{
			outcomeOf(replay.Paper, r.of(replay.Paper), base),
			outcomeOf(replay.PaperStrict, r.of(replay.PaperStrict), base),
			outcomeOf(replay.Pinwheel, r.of(replay.Pinwheel), base),
			outcomeOf(budgetPolicy, w.budget[r.program].of(replay.Pinwheel), base),
			outcomeOf(replay.Oracle, r.of(replay.Oracle), base),
		}
		rows = append(rows, row)
	}
	return rows
}

func (w *writer) goalRows() []goalRow {
	var rows []goalRow
	for _, r := range w.runs {
		if n := len(rows); n > 0 && rows[n-1].Trace == r.program && rows[n-1].Costs == r.options.Provider {
			rows[n-1].Recorded = goalOf(r) // replay has it right after the dedicated one
			continue
		}
		rows = append(rows, goalRow{Trace: r.program, Costs: r.options.Provider, Dedicated: goalOf(r)})
	}
	return rows
}

func goalOf(r *Run) goal {
	x := r.of(replay.Pinwheel)
	helperNs := float64(x.RunNs) * float64(r.ranks())
	g := goal{CapturedAvg: Number(x.CapturedAvg, "%.3f"), SecondHalf: Number(r.capturedLate(replay.Pinwheel), "%.3f"),
		Late: fmt.Sprintf("%.2f %%", 100*x.LateShare()), Slowdown: Number(x.Slowdown, "%.4f"), Busy: Percent(float64(x.HelperCPUNs) / max(helperNs, 1))}
	if r.options.Timeline == replay.Dedicated {
		mark(&g.CapturedAvg, x.CapturedAvg != nil && *x.CapturedAvg < goalCaptured)
		mark(&g.Slowdown, x.Slowdown != nil && *x.Slowdown > goalSlowdown)
	}
	return g
}

// mark makes the cell of a goal that is missed bold.
func mark(cell *string, missed bool) {
	if missed {
		*cell = "**" + *cell + "**"
	}
}

func tableOf(r *Run) policyTable {
	t := policyTable{Trace: r.program, Costs: r.options.Provider}
	base := r.of(replay.LeavePinned)
	for _, policy := range replay.Policies() {
		x := r.of(policy)
		if x == nil {
			continue
		}
		t.Rows = append(t.Rows, policyRow{
			Policy: policy, Peak: size(float64(x.PeakPinnedBytes)), PeakSaved: Percent(saved(float64(base.PeakPinnedBytes), float64(x.PeakPinnedBytes))),
			Avg: size(x.AvgPinnedBytes), AvgSaved: Percent(saved(base.AvgPinnedBytes, x.AvgPinnedBytes)),
			First: fmt.Sprint(x.FirstRegs), Late: fmt.Sprint(x.LateUses()), Helper: fmt.Sprint(x.HelperRegs), Wasted: fmt.Sprint(x.WastedRegs),
			Stall: fmt.Sprintf("%.1f ms", float64(x.StallNs)/1e6), Slowdown: Number(x.Slowdown, "%.4f"), CapAvg: Number(x.CapturedAvg, "%.3f"),
		})
	}
	return t
}

func (w *writer) errorRows() []errorRow {
	var rows []errorRow
	for _, r := range w.dedicated(w.o.Costs[0].Name) {
		row := errorRow{Trace: r.program}
		for _, policy := range Predictors() {
			if x := r.of(policy); x != nil {
				row.Cells = append(row.Cells, Share(x.Err05), Share(x.Err5))
			}
		}
		row.Cells = append(row.Cells, r.own.cells()...)
		rows = append(rows, row)
	}
	return rows
}

// groupRows compare the sums of the nodes' peaks.
func (w *writer) groupRows() []groupRow {
	paper := []float64{papers.Has("li2011-FT.C.16-1"), papers.Has("li2011-FT.C.16-2")}
	var rows []groupRow
	for i, g := range w.groups {
		base, _ := nodePeaks(g.run, replay.LeavePinned)
		add := func(name string, r *Run, policy string) {
			sum, most := nodePeaks(r, policy)
			all := r.of(policy)
			row := groupRow{Name: fmt.Sprintf("test %d, %s", i+1, g.name), Policy: name, Peak: size(float64(sum)), Most: size(float64(most)),
				Saved: Percent(saved(float64(base), float64(sum))), Late: fmt.Sprintf("%.2f %%", 100*all.LateShare()), Slowdown: Number(all.Slowdown, "%.4f")}
			if name == replay.Paper {
				row.PaperSaved = Percent(paper[i])
			}
			rows = append(rows, row)
		}
		for _, policy := range ChartPolicies() {
			add(policy, g.run, policy)
			if policy == replay.Pinwheel {
				add(budgetPolicy, g.budgeted, policy)
			}
		}
	}
	return rows
}

// Go is the version that this program was built with.
func (readmeData) Go() string { return runtime.Version() }

// PredictorNames are the columns of the prediction table.
func (readmeData) PredictorNames() []string { return Predictors() }

// BudgetPolicy names the row of pinwheel under a budget.
func (readmeData) BudgetPolicy() string { return budgetPolicy }

func size(bytes float64) string { return mem.FormatBytes(uint64(bytes)) }

// Percent formats a share: "12.3 %".
func Percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v+0) }

// Share is Percent of a share that may be nil, for "-".
func Share(v *float64) string {
	if v == nil {
		return "-"
	}
	return Percent(*v)
}

// Number formats a number that may be nil, for "-".
func Number(v *float64, format string) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf(format, *v)
}
