package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"pinwheel/internal/chart"
	"pinwheel/internal/machine"
	"pinwheel/internal/outfile"
	"pinwheel/lab/replay"
	"pinwheel/trace"
)

// Options say what to report on.
type Options struct {
	Traces []string // .pwt files
	OutDir string   // README.md, policies.md, virtual.jsonl and figures/ are written there
	// Document is a file whose section between Markers is replaced by a short
	// table. Empty for none.
	Document string
	Costs    []Costs // the first is that of the figures
	Machine  machine.Machine
	Version  string // of this program
	Date     string // of the report, as it is to be printed
	// Rank is the rank of the figures of memory over time.
	Rank int
	// Step, if set, is called when one of Steps is done.
	Step func()
}

// windowTraces are those of the window figure: the benchmarks of the paper's
// Fig. 5 and 6 in the size that has the most iterations.
var windowTraces = []string{"bt.B.4", "cg.C.4", "ft.B.4", "lu.B.4", "mg.C.4", "sp.B.4"}

// Steps is the number of steps that Write takes, for a progress bar.
func (o *Options) Steps() int {
	figures := len(o.Traces) + 1
	windows := len(o.windowPaths()) * (len(contextWindows) + len(detectorWindows))
	budgets := len(o.Traces)
	return len(o.Traces)*len(o.Costs)*2 + budgets + figures + windows
}

func (o *Options) windowPaths() []string {
	return slices.DeleteFunc(slices.Clone(o.Traces), func(path string) bool {
		return !slices.Contains(windowTraces, trace.ProgramFromPath(path))
	})
}

// Write replays everything and writes the report. Files that can't be made
// leave the others unwritten; each file is replaced at once.
func Write(ctx context.Context, o Options) error {
	if len(o.Traces) == 0 || len(o.Costs) == 0 {
		return errors.New("nothing to report on: no traces or no costs")
	}
	for i, c := range o.Costs {
		if slices.ContainsFunc(o.Costs[:i], func(d Costs) bool { return c.Name == d.Name }) {
			return fmt.Errorf("two costs are named %s", c.Name)
		}
	}
	if o.Step == nil {
		o.Step = func() {}
	}
	w := &writer{o: &o, budget: map[string]*Run{}, files: map[string][]byte{}}
	for _, part := range []func(context.Context) error{w.memory, w.replay, w.budgets, w.aggregation, w.windows} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	main := w.dedicated(o.Costs[0].Name)
	if err := errors.Join(w.figure("savings.svg", SavingsFigure(main, ChartPolicies())), w.figure("errors.svg", ErrorFigure(main)), w.data(), w.readme(), w.document()); err != nil {
		return err
	}
	return flush(w.files)
}

// writer gathers a report.
type writer struct {
	o      *Options
	runs   []*Run
	budget map[string]*Run // pinwheel within the oracle's peak, by program
	groups []*grouping
	files  map[string][]byte // by path
}

// add puts a file below OutDir.
func (w *writer) add(name string, content []byte) {
	w.files[filepath.Join(w.o.OutDir, name)] = content
}

// replay runs every trace under all costs and timelines.
func (w *writer) replay(ctx context.Context) error {
	for _, path := range w.o.Traces {
		for i := range w.o.Costs {
			for _, t := range []replay.Timeline{replay.Dedicated, replay.Recorded} {
				o := w.o.Costs[i].options()
				o.Timeline = t
				own := ownGrading(&o)
				r, err := replayFile(ctx, path, o)
				if err != nil {
					return err
				}
				r.own = own()
				w.runs = append(w.runs, r)
				w.o.Step()
			}
		}
	}
	return nil
}

// budgets runs pinwheel within the oracle's peak.
func (w *writer) budgets(ctx context.Context) error {
	for i, r := range w.dedicated(w.o.Costs[0].Name) {
		b, err := budgetRun(ctx, w.o.Traces[i], r)
		if err != nil {
			return err
		}
		w.budget[r.program] = b
		w.o.Step()
	}
	return nil
}

// dedicated returns the runs of one cost model in the dedicated timeline.
func (w *writer) dedicated(costs string) []*Run {
	var rs []*Run
	for _, r := range w.runs {
		if r.options.Provider == costs && r.options.Timeline == replay.Dedicated {
			rs = append(rs, r)
		}
	}
	return rs
}

func (w *writer) memory(ctx context.Context) error {
	for _, path := range w.o.Traces {
		fig, err := memoryFigureOf(ctx, path, w.o.Rank, w.o.Costs[0].options())
		if err == nil {
			err = w.figure("memory-"+trace.ProgramFromPath(path)+".svg", fig)
		}
		if err != nil {
			return err
		}
		w.o.Step()
	}
	return nil
}

const aggregationProgram, aggregationRanks = "ft.C.16", 16

func (w *writer) aggregation(ctx context.Context) error {
	defer w.o.Step()
	i := slices.IndexFunc(w.o.Traces, func(path string) bool { return trace.ProgramFromPath(path) == aggregationProgram })
	if i < 0 {
		return nil
	}
	fig, gs, err := aggregationFigure(ctx, w.o.Traces[i], aggregationRanks, &w.o.Costs[0])
	if err != nil {
		return err
	}
	w.groups = gs
	return w.figure("aggregation.svg", fig)
}

func (w *writer) windows(ctx context.Context) error {
	fig, points, err := windowFigure(ctx, w.o.windowPaths(), &w.o.Costs[0], w.o.Step)
	if err != nil {
		return err
	}
	for _, r := range w.dedicated(w.o.Costs[0].Name) {
		if n := float64(r.own.n); n > 0 {
			points = append(points, windowPoint{Trace: r.program, Policy: replay.Paper, SameSignature: true, Window: paperWindow,
				Err05: float64(r.own.below05) / n, Err5: float64(r.own.below5) / n})
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for i := range points {
		if err := enc.Encode(&points[i]); err != nil {
			return err
		}
	}
	w.add("windows.jsonl", b.Bytes())
	return w.figure("window.svg", fig)
}

// figure draws a figure into figures/.
func (w *writer) figure(name string, fig *chart.Figure) error {
	var b bytes.Buffer
	err := fig.WriteSVG(&b)
	w.add(filepath.Join("figures", name), b.Bytes())
	return err
}

// data writes all results, as nasreplay compare --json does.
func (w *writer) data() error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, r := range w.runs {
		for i := range r.results {
			if r.results[i].Rank == replay.AllRanks {
				if err := enc.Encode(&r.results[i]); err != nil {
					return err
				}
			}
		}
	}
	w.add("virtual.jsonl", b.Bytes())
	return nil
}

// flush writes the files. If one can't be written, they all stay as they were.
func flush(files map[string][]byte) error {
	var outs []*outfile.File
	defer func() {
		for _, out := range outs {
			_ = out.Discard() // those that are not in their place
		}
	}()
	for path, content := range files {
		out, err := outfile.Create(path)
		if err != nil {
			return err
		}
		outs = append(outs, out)
		if _, err := out.Write(content); err != nil {
			return err
		}
	}
	for _, out := range outs {
		if err := out.Commit(); err != nil {
			return err
		}
	}
	return nil
}
