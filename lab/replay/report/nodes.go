package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"text/template"

	"pinwheel/internal/chart"
	"pinwheel/internal/machine"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/scale"
	"pinwheel/trace"
)

// NodesOptions say what to report on full nodes.
type NodesOptions struct {
	Traces  string // directory of the .pwt files
	OutDir  string // nodes.md, nodes.jsonl and figures/ are written there
	Costs   Costs
	Machine machine.Machine
	Version string
	Date    string
	// MostRanks bounds the scaling.
	MostRanks int
	// Step, if set, is called with what is done next.
	Step func(what string)
}

// placing is a way to give helpers cores.
type placing struct {
	Name  string
	cores *replay.IdleCores // nil: each has its own
	share float64           // of its rank's time that uses on demand may cost without an idle core, under auto
}

// oldSliceNs is the time slice that Linux gave a thread before its fair scheduler (2.6.23), which the paper's cluster may have run.
const oldSliceNs = 100_000_000

func placings(idle int) []placing {
	return []placing{
		{"conservative", &replay.IdleCores{PerNode: idle, Policy: "conservative"}, 0},
		{"aggressive", &replay.IdleCores{PerNode: idle, Policy: "aggressive"}, 0},
		{"aggressive, slices of 100 ms", &replay.IdleCores{PerNode: idle, Policy: "aggressive", SliceNs: oldSliceNs}, 0},
		{"auto", &replay.IdleCores{PerNode: idle, Policy: "auto"}, 0.05},
		{"a core for each helper", nil, 0},
	}
}

// nodesRow is a policy under a way to place its helpers.
type nodesRow struct {
	Case, Placing, Policy string
	Saved, PeakSaved      string // of what the nodes pin: on average, at their peaks
	Late, Slowdown        string
	Helped, Waited, Moves string
}

// sharedNodes is the part of a run that a table is about.
type sharedNodes struct {
	name  string
	run   *Run
	nodes []int // of the run: those that count
}

// sums are what the nodes pin together: on average, and each at its peak.
func (n *sharedNodes) sums(policy string) (avg, peak float64) {
	for _, i := range n.nodes {
		r := n.run.node(policy, i)
		avg += r.AvgPinnedBytes
		peak += float64(r.PeakPinnedBytes)
	}
	return avg, peak
}

func (n *sharedNodes) row(placing, policy string) nodesRow {
	baseAvg, basePeak := n.sums(replay.LeavePinned)
	avg, peak := n.sums(policy)
	all := n.run.of(policy)
	row := nodesRow{
		Case: n.name, Placing: placing, Policy: policy, Saved: Percent(saved(baseAvg, avg)), PeakSaved: Percent(saved(basePeak, peak)),
		Late: fmt.Sprintf("%.2f %%", 100*all.LateShare()), Slowdown: Number(all.Slowdown, "%.4f"), Helped: "100.0 %", Waited: "-", Moves: "-",
	}
	if s := all.Sharing; s != nil {
		total := float64(all.RunNs) * float64(n.run.ranks())
		row.Helped = Percent(float64(s.HelpedNs) / total)
		row.Waited = fmt.Sprintf("%.1f ms/s", 1e3*float64(s.HelperWaitNs)/max(float64(s.HelpedNs), 1))
		row.Moves = fmt.Sprint(s.HelperMoves)
	}
	return row
}

// nodesWriter gathers the report.
type nodesWriter struct {
	o     *NodesOptions
	bases map[string]*scale.Base
	data  bytes.Buffer
	files map[string][]byte
}

// nodesData is what the template sees.
type nodesData struct {
	*NodesOptions
	Shared     []nodesRow
	Aggregated []nodesRow
	Check      []checkRow
	Strong     []scalingRow
	Weak       []scalingRow
	Claims     []claimRow
	Unfit      []string
}

// Steps is the number of steps that WriteNodes takes, for a progress bar.
func (o *NodesOptions) Steps() int {
	n := len(sharedCases)*len(placings(idleOfEight)) + 2*(2*len(placings(1))-1) + 2
	for _, c := range slices.Concat(strongCases, weakCases) {
		for _, ranks := range c.ranks {
			if ranks <= o.MostRanks {
				n++
			}
		}
	}
	return n
}

// WriteNodes replays programs on nodes whose helpers share idle cores, and programs on many ranks,
// and writes the report. Files that can't be made leave the others unwritten.
func WriteNodes(ctx context.Context, o NodesOptions) error {
	if o.Step == nil {
		o.Step = func(string) {}
	}
	w := &nodesWriter{o: &o, bases: map[string]*scale.Base{}, files: map[string][]byte{}}
	d := nodesData{NodesOptions: &o}
	for _, part := range []func(context.Context, *nodesData) error{w.shared, w.aggregated, w.check, w.strong, w.weak} {
		if err := part(ctx, &d); err != nil {
			return err
		}
	}
	t, err := template.ParseFS(templates, "nodes.md.tmpl")
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := t.Execute(&page, d); err != nil {
		return err
	}
	w.add("nodes.md", page.Bytes())
	w.add("nodes.jsonl", w.data.Bytes())
	return flush(w.files)
}

func (w *nodesWriter) add(name string, content []byte) {
	w.files[filepath.Join(w.o.OutDir, name)] = content
}

func (w *nodesWriter) figure(name string, fig *chart.Figure) error {
	var b bytes.Buffer
	err := fig.WriteSVG(&b)
	w.add(filepath.Join("figures", name), b.Bytes())
	return err
}

// base loads a trace once.
func (w *nodesWriter) base(name string) (*scale.Base, error) {
	if b := w.bases[name]; b != nil {
		return b, nil
	}
	f, err := trace.Open(filepath.Join(w.o.Traces, name+".pwt"))
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	b, err := scale.Load(f)
	w.bases[name] = b
	return b, err
}

// replay runs a job and keeps the results of nodes and sums for nodes.jsonl.
func (w *nodesWriter) replay(ctx context.Context, what string, job replay.Job, o replay.Options) (*Run, error) {
	w.o.Step(what)
	o.EnsureDefaults()
	rs, err := replay.CompareJob(ctx, o, job)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	enc := json.NewEncoder(&w.data)
	for i := range rs {
		if rs[i].Rank == replay.AllRanks {
			line := struct {
				Experiment string `json:"experiment"`
				*replay.Result
			}{what, &rs[i]}
			if err := enc.Encode(line); err != nil {
				return nil, err
			}
		}
	}
	return &Run{program: job.Program(), options: o, results: rs}, nil
}

// helperPolicies are those whose helpers share cores.
func helperPolicies() []string { return []string{replay.LeavePinned, replay.Paper, replay.Pinwheel} }

// sharedCases are the paper's Fig. 8 and table 1: eight cores a node, six of them with tasks. Ranks
// are dealt out in order. The nodes with six tasks count, as in the paper.
var sharedCases = []struct {
	name, trace string
	ranks       int
	tasks       []int // on each node
	iterations  int
	lookNs      int64 // between two looks of a helper; 0: as in a job
}{
	{"SP.D.36", "sp.D.4", 36, []int{6, 6, 6, 6, 6, 6}, 16, 0},
	{"CG.C.32", "cg.C.4", 32, []int{6, 6, 5, 5, 5, 5}, 6, 20_000_000},
}

const (
	idleOfEight = 2
	fullTasks   = 6
)

func (w *nodesWriter) shared(ctx context.Context, d *nodesData) error {
	fig := &chart.Figure{
		Title:    "Six tasks and two idle cores on a node: what the node pins",
		Subtitle: "two iterations, registration costs of " + w.o.Costs.Name + "; as Fig. 8 of the paper",
		Columns:  2, PanelHeight: 230,
	}
	for _, c := range sharedCases {
		b, err := w.base(c.trace)
		if err != nil {
			return err
		}
		job, err := scale.StrongJob(b, c.ranks, scale.Options{Iterations: c.iterations})
		if err != nil {
			return err
		}
		o := w.o.Costs.options(helperPolicies()...)
		var full []int
		for first, i := 0, 0; i < len(c.tasks); first, i = first+c.tasks[i], i+1 {
			o.Nodes = append(o.Nodes, nil)
			for r := range c.tasks[i] {
				o.Nodes[i] = append(o.Nodes[i], first+r)
			}
			if c.tasks[i] == fullTasks {
				full = append(full, i)
			}
		}
		var lines map[string][]chart.Series
		for _, p := range placings(idleOfEight) {
			o.Cores, o.HelperShare = p.cores, p.share
			if o.Cores != nil {
				o.Cores.IntervalNs = c.lookNs
			}
			o.SeriesFromNs, o.SeriesToNs = 0, 0
			run, err := w.replay(ctx, c.name+", "+p.Name, job, o)
			if err != nil {
				return err
			}
			nodes := &sharedNodes{c.name, run, full}
			for _, policy := range helperPolicies()[1:] {
				d.Shared = append(d.Shared, nodes.row(p.Name, policy))
			}
			if lines, err = w.closeUp(ctx, lines, p, job, run, c.iterations); err != nil {
				return err
			}
		}
		for _, policy := range helperPolicies()[1:] {
			fig.Panels = append(fig.Panels, chart.Panel{
				Title: c.name + ", policy " + policy, XLabel: "time (s)", YLabel: "pinned by the node (MiB)", XUnit: 1e9, YUnit: mib, Series: lines[policy],
			})
		}
	}
	return w.figure("nodes.svg", fig)
}

// closeUp adds two iterations of the first node to the lines of each policy's panel.
func (w *nodesWriter) closeUp(ctx context.Context, lines map[string][]chart.Series, p placing, job replay.Job, run *Run, steps int) (map[string][]chart.Series, error) {
	o := run.options
	first := run.node(replay.LeavePinned, 0)
	start := firstPinned(&first.Pinned)
	step := (first.RunNs - start) / int64(steps)
	o.SeriesFromNs = start + step*int64(steps-closeUpSteps)
	o.SeriesToNs = o.SeriesFromNs + step*closeUpSteps
	o.EnsureDefaults()
	rs, err := replay.CompareJob(ctx, o, job)
	if err != nil {
		return nil, err
	}
	close := &Run{program: run.program, options: o, results: rs}
	add := func(policy string, s chart.Series) {
		s.Step = true
		lines[policy] = append(lines[policy], s)
	}
	line := func(policy string, s chart.Series) chart.Series {
		s.X, s.Y = peaks(&close.node(policy, 0).Pinned)
		return s
	}
	if lines == nil {
		lines = map[string][]chart.Series{}
		for _, policy := range helperPolicies()[1:] {
			s := look(replay.LeavePinned)
			s.Name = "no helper"
			add(policy, line(replay.LeavePinned, s))
		}
	}
	for _, policy := range helperPolicies()[1:] {
		s := chart.Series{Name: p.Name, Color: chart.Palette[len(lines[policy])-1]}
		add(policy, line(policy, s))
	}
	return lines, nil
}

// aggregated is the paper's section 6.3: 16 ranks on four nodes, in two groupings.
func (w *nodesWriter) aggregated(ctx context.Context, d *nodesData) error {
	b, err := w.base(aggregationProgram)
	if err != nil {
		return err
	}
	job := scale.Tiled(b, 1)
	for _, g := range groupings(aggregationRanks) {
		for _, idle := range []int{2, 1} {
			for _, p := range placings(idle) {
				if p.cores == nil && idle != 2 {
					continue // the same again
				}
				o := w.o.Costs.options(helperPolicies()...)
				o.Nodes, o.Cores, o.HelperShare = g.nodes, p.cores, p.share
				name := fmt.Sprintf("%s, %d idle", g.name, idle)
				if p.cores == nil {
					name = g.name
				}
				run, err := w.replay(ctx, fmt.Sprintf("%s, %s, %s", b.Name(), name, p.Name), job, o)
				if err != nil {
					return err
				}
				nodes := &sharedNodes{name, run, []int{0, 1, 2, 3}}
				for _, policy := range helperPolicies()[1:] {
					d.Aggregated = append(d.Aggregated, nodes.row(p.Name, policy))
				}
			}
		}
	}
	return nil
}
