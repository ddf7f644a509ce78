package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"text/template"

	"golang.org/x/sync/errgroup"

	"pinwheel/internal/machine"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/explain"
	"pinwheel/trace"
)

// The parts of the report on prediction.
const (
	partRuns     = "runs"     // every trace, under all costs and timelines, against its targets
	partProfile  = "profile"  // the same with what another run of the same job has learned
	partCauses   = "causes"   // where the possible saving went
	partErrors   = "errors"   // of predictions, as the paper measures them
	partAblation = "ablation" // each idea left out
	partRobust   = "robust"   // runs that can't be foreseen
)

// PredictionParts are the names of all parts, in the order of the report.
func PredictionParts() []string {
	return []string{partRuns, partProfile, partCauses, partErrors, partAblation, partRobust}
}

// PredictionOptions say what to report on prediction.
type PredictionOptions struct {
	Traces  []string // .pwt files
	Again   string   // directory of second runs of the same jobs, under the same names; it may lack some
	OutDir  string   // prediction.md and prediction.jsonl are written there
	Parts   []string // of PredictionParts
	Costs   []Costs  // the first is that of all parts but the runs
	Machine machine.Machine
	Version string
	Date    string
	// Parallel is the number of replays at one time.
	Parallel int
	// Begin, if set, is told how many replays there will be, and Step when one has ended. Step is called from
	// several goroutines.
	Begin func(steps int)
	Step  func()
}

// predictionRow is one replay. It becomes a line of prediction.jsonl for each of its policies.
type predictionRow struct {
	Part      string `json:"part"`
	Condition string `json:"condition,omitempty"`
	costs     *Costs
	path      string // of the trace; empty for a job that is made up
	options   func(o *replay.Options)
	job       func(replay.Job) replay.Job // nil: as recorded
	teacher   *teacher                    // whose trained entries policy pinwheel begins with; nil: none

	run *Run
	own ownErrors            // of policy paper, for partErrors
	x   *explain.Explanation // for partCauses
}

// predictionWriter gathers the report.
type predictionWriter struct {
	o        *PredictionOptions
	rows     []*predictionRow
	teachers map[string]*teacher // by path
}

// ablationPolicies are replayed by every row that does without paper.
var ablationPolicies = []string{replay.LeavePinned, replay.Pinwheel, replay.Oracle}

// Prediction replays what the parts ask for, and returns the report as Markdown and every result as lines of JSON.
func Prediction(ctx context.Context, o PredictionOptions) (page, data []byte, err error) {
	if len(o.Traces) == 0 || len(o.Costs) == 0 {
		return nil, nil, errors.New("nothing to report on: no traces or no costs")
	}
	w := &predictionWriter{o: &o, teachers: map[string]*teacher{}}
	for _, part := range o.Parts {
		switch part {
		case partRuns:
			w.planRuns()
		case partProfile:
			w.planProfiles()
		case partCauses:
			w.planCauses()
		case partErrors:
			w.planErrors()
		case partAblation:
			w.planAblation()
		case partRobust:
			w.planRobust()
		default:
			return nil, nil, fmt.Errorf("unknown part %q (choose from %v)", part, PredictionParts())
		}
	}
	if err := w.replay(ctx); err != nil {
		return nil, nil, err
	}
	odd := template.FuncMap{"odd": func(i int) bool { return i%2 == 1 }}
	t, err := template.New("prediction.md.tmpl").Funcs(odd).ParseFS(templates, "prediction.md.tmpl")
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, w.data()); err != nil {
		return nil, nil, err
	}
	data, err = w.lines()
	return b.Bytes(), data, err
}

// WritePrediction writes the report of all its parts.
func WritePrediction(ctx context.Context, o PredictionOptions) error {
	o.Parts = PredictionParts()
	page, data, err := Prediction(ctx, o)
	if err != nil {
		return err
	}
	return flush(map[string][]byte{
		filepath.Join(o.OutDir, "prediction.md"): page, filepath.Join(o.OutDir, "prediction.jsonl"): data,
	})
}

// plan adds a replay of a trace.
func (w *predictionWriter) plan(r predictionRow) {
	if r.costs == nil {
		r.costs = &w.o.Costs[0]
	}
	w.rows = append(w.rows, &r)
}

// of returns the rows of a part.
func (w *predictionWriter) of(part string) (rows []*predictionRow) {
	for _, r := range w.rows {
		if r.Part == part {
			rows = append(rows, r)
		}
	}
	return rows
}

// conditions returns those of a part, in the order of the plan.
func (w *predictionWriter) conditions(part string) (names []string) {
	for _, r := range w.of(part) {
		if !slices.Contains(names, r.Condition) {
			names = append(names, r.Condition)
		}
	}
	return names
}

// under returns the rows of a part under one condition.
func (w *predictionWriter) under(part, condition string) []*predictionRow {
	return slices.DeleteFunc(w.of(part), func(r *predictionRow) bool { return r.Condition != condition })
}

// replay carries out the plan, several replays at a time.
func (w *predictionWriter) replay(ctx context.Context) error {
	if w.o.Begin != nil {
		w.o.Begin(len(w.rows))
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(w.o.Parallel, 1))
	for _, r := range w.rows {
		group.Go(func() error {
			if err := r.replay(ctx); err != nil {
				return err
			}
			if w.o.Step != nil {
				w.o.Step()
			}
			return nil
		})
	}
	return group.Wait()
}

// replay runs one row, on one processor.
func (r *predictionRow) replay(ctx context.Context) error {
	o := r.costs.options(ablationPolicies...)
	o.Parallel = 1
	if r.options != nil {
		r.options(&o)
	}
	if r.teacher != nil {
		var err error
		if o.Trained, err = r.teacher.trained(ctx, r.costs); err != nil {
			return err
		}
	}
	if r.path == "" {
		return r.compare(ctx, o, nil)
	}
	f, err := trace.Open(r.path)
	if err != nil {
		return err
	}
	defer f.Close() // only read from
	if torn := f.Torn(); torn != nil {
		return torn
	}
	if r.Part == partCauses {
		r.x, err = explain.Trace(ctx, o, f)
		return err
	}
	return r.compare(ctx, o, replay.RunOf(f))
}

func (r *predictionRow) compare(ctx context.Context, o replay.Options, job replay.Job) error {
	if r.job != nil {
		job = r.job(job)
	}
	own := func() ownErrors { return ownErrors{} }
	if r.Part == partErrors {
		own = ownGrading(&o)
	}
	o.EnsureDefaults()
	rs, err := replay.CompareJob(ctx, o, job)
	if err != nil {
		return fmt.Errorf("%s: %w", job.Program(), err)
	}
	r.run, r.own = &Run{program: job.Program(), options: o, results: rs}, own()
	return nil
}

// program names what a row replays.
func (r *predictionRow) program() string { return trace.ProgramFromPath(r.path) }

// lines are the results of all rows, of all ranks together.
func (w *predictionWriter) lines() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range w.rows {
		var err error
		switch {
		case r.x != nil:
			err = enc.Encode(struct {
				*predictionRow
				Trace       string         `json:"trace"`
				Provider    string         `json:"provider"`
				CapturedAvg *float64       `json:"captured_avg"`
				Causes      explain.Shares `json:"causes"`
			}{r, r.x.Result.Trace, r.x.Result.Provider, r.x.Result.CapturedAvg, r.x.Missed})
		default:
			for i := range r.run.results {
				if x := &r.run.results[i]; x.Rank == replay.AllRanks && err == nil {
					err = enc.Encode(struct {
						*predictionRow
						*replay.Result
					}{r, x})
				}
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// has tells whether a part was asked for.
func (w *predictionWriter) has(part string) bool { return slices.Contains(w.o.Parts, part) }
