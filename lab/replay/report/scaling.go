package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"pinwheel/internal/chart"
	"pinwheel/lab/replay"
	"pinwheel/lab/replay/scale"
	"pinwheel/results/papers"
)

// scalingRow is a program on a number of ranks: what a node pins on average, and what is saved.
type scalingRow struct {
	Trace                string
	Ranks, Nodes         int
	Base, Paper, Ours    string // mean over nodes
	PaperSaved, Saved    string
	OracleSaved          string
	Late, Slowdown, Note string

	PaperPeakSaved, PeakSaved, PaperSlowdown string
}

// scalingCase is a program whose scaling is shown.
type scalingCase struct {
	trace      string
	ranks      []int
	iterations int // of a run on so many ranks that all would take long
}

// strongCases have the ranks of the paper's Fig. 13, and more.
var strongCases = []scalingCase{
	{"ft.B.4", []int{4, 16, 32, 64, 128, 256, 512, 1024, 4096}, 0},
	{"is.C.4", []int{4, 16, 64, 256}, 0},
	{"cg.C.4", []int{4, 16, 64, 256, 1024}, 2},
	{"sp.D.4", []int{4, 16, 36, 64, 256, 1024}, 4}, {"bt.C.4", []int{4, 16, 36, 64, 256, 1024}, 4},
}

var unfitCases = []string{"lu.D.4", "mg.C.4"}

// weakCases have the ranks of the paper's Fig. 14, and the recorded ones. BT and SP run on square numbers of ranks.
var weakCases = []scalingCase{
	{"ft.B.4", []int{4, 16, 32, 64}, 0}, {"sp.D.4", []int{4, 16, 36, 64}, 4}, {"bt.C.4", []int{4, 16, 36, 64}, 4},
}

// scalingClaim is what the paper has of FT on a number of nodes.
type scalingClaim struct {
	Kind  scale.Kind
	Nodes int
	saved string // the row of results/papers; that of the run times has "time" for "saved"
}

var scalingClaims = []scalingClaim{
	{scale.Strong, 16, "li2011-strong-16-saved"}, {scale.Strong, 32, "li2011-strong-32-saved"}, {scale.Strong, 64, "li2011-strong-64-saved"},
	{scale.Weak, 16, "li2011-weak-16-saved"}, {scale.Weak, 32, "li2011-weak-32-saved"}, {scale.Weak, 64, "li2011-weak-64-saved"},
}

// claimRow sets what the paper has of FT beside the same of ours.
type claimRow struct {
	Kind            scale.Kind
	Saved, Slowdown string // theirs
	Ours            scalingRow
}

func claimRows(d *nodesData) (rows []claimRow) {
	for _, c := range scalingClaims {
		ours := d.Strong
		if c.Kind == scale.Weak {
			ours = d.Weak
		}
		for _, r := range ours {
			if r.Trace == weakCases[0].trace && r.Ranks == c.Nodes {
				rows = append(rows, claimRow{c.Kind, fmt.Sprintf("%.2f %%", 100*papers.Has(c.saved)),
					fmt.Sprintf("%.4f", papers.Has(strings.TrimSuffix(c.saved, "saved")+"time")), r})
			}
		}
	}
	return rows
}

func (w *nodesWriter) strong(ctx context.Context, d *nodesData) error {
	fig := &chart.Figure{
		Title:    "Strong scaling: what a rank pins on average",
		Subtitle: "one rank a node, derived from recordings of four ranks; registration costs of " + w.o.Costs.Name,
		Columns:  2, PanelHeight: 230,
	}
	for _, c := range strongCases {
		rows, lines, err := w.scaling(ctx, scale.Strong, c)
		if err != nil {
			return err
		}
		d.Strong = append(d.Strong, rows...)
		ticks := make([]float64, len(c.ranks))
		for i, ranks := range c.ranks {
			ticks[i] = float64(ranks)
		}
		fig.Panels = append(fig.Panels, chart.Panel{
			Title: strings.TrimSuffix(rows[0].Trace, ".4"), XLabel: "ranks", YLabel: "pinned by a rank (MiB)", XLog: true, YUnit: mib, Series: lines,
			XMin: float64(c.ranks[0]), XMax: float64(c.ranks[len(c.ranks)-1]), XTicks: ticks,
		})
	}
	for _, name := range unfitCases {
		b, err := w.base(name)
		if err != nil {
			return err
		}
		if _, err = scale.StrongJob(b, 4*b.Ranks(), scale.Options{}); !errors.Is(err, scale.ErrUnfit) {
			return fmt.Errorf("%s: want it to be unfit, got %v", name, err)
		}
		d.Unfit = append(d.Unfit, err.Error())
	}
	return w.figure("scaling.svg", fig)
}

func (w *nodesWriter) weak(ctx context.Context, d *nodesData) error {
	for _, c := range weakCases {
		rows, _, err := w.scaling(ctx, scale.Weak, c)
		if err != nil {
			return err
		}
		d.Weak = append(d.Weak, rows...)
	}
	d.Claims = claimRows(d)
	return nil
}

// scaling runs a program on several numbers of ranks, one on each node.
func (w *nodesWriter) scaling(ctx context.Context, kind scale.Kind, c scalingCase) ([]scalingRow, []chart.Series, error) {
	b, err := w.base(c.trace)
	if err != nil {
		return nil, nil, err
	}
	lines := map[string]*chart.Series{}
	var rows []scalingRow
	for _, ranks := range c.ranks {
		if ranks > w.o.MostRanks {
			continue
		}
		w.o.Step(fmt.Sprintf("%s on %d ranks", b.Name(), ranks))
		rs, err := scale.Compare(ctx, b, kind, ranks, 1, w.o.Costs.options(ChartPolicies()...), scale.Options{Iterations: c.iterations})
		if errors.Is(err, scale.ErrUnfit) {
			rows = append(rows, scalingRow{Trace: b.Name(), Ranks: ranks, Note: err.Error()})
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		enc := json.NewEncoder(&w.data)
		by := map[string]*scale.Result{}
		for i := range rs {
			r := &rs[i]
			by[r.Policy] = r
			if err := enc.Encode(r); err != nil {
				return nil, nil, err
			}
			if lines[r.Policy] == nil {
				s := look(r.Policy)
				lines[r.Policy] = &s
			}
			l := lines[r.Policy]
			l.X, l.Y = append(l.X, float64(ranks)), append(l.Y, r.NodeAvgBytes)
		}
		rows = append(rows, scalingRowOf(b.Name(), by))
	}
	var series []chart.Series
	for _, policy := range ChartPolicies() {
		if lines[policy] != nil {
			series = append(series, *lines[policy])
		}
	}
	return rows, series, nil
}

func scalingRowOf(name string, by map[string]*scale.Result) scalingRow {
	base, paper, ours, oracle := by[replay.LeavePinned], by[replay.Paper], by[replay.Pinwheel], by[replay.Oracle]
	row := scalingRow{
		Trace: name, Ranks: ours.Ranks, Nodes: ours.Nodes, Base: size(base.NodeAvgBytes), Paper: size(paper.NodeAvgBytes), Ours: size(ours.NodeAvgBytes),
		PaperSaved: "-", Saved: "-", OracleSaved: "-", Late: "-", Slowdown: Number(ours.Slowdown, "%.4f"),
	}
	if base.NodeAvgBytes == 0 {
		row.Note = "every message is below the threshold"
		return row
	}
	row.PaperSaved, row.Saved = Percent(saved(base.NodeAvgBytes, paper.NodeAvgBytes)), Percent(saved(base.NodeAvgBytes, ours.NodeAvgBytes))
	row.OracleSaved = Percent(saved(base.NodeAvgBytes, oracle.NodeAvgBytes))
	row.Late = fmt.Sprintf("%.2f %%", 100*ours.Result.LateShare())
	row.PaperPeakSaved = Percent(saved(base.NodeMeanPeakBytes, paper.NodeMeanPeakBytes))
	row.PeakSaved = Percent(saved(base.NodeMeanPeakBytes, ours.NodeMeanPeakBytes))
	row.PaperSlowdown = Number(paper.Slowdown, "%.4f")
	return row
}

// checkRow sets a derived run beside the recorded one.
type checkRow struct {
	Policy                          string
	Recorded, Derived, Off          string // pinned on average by a rank
	RecordedPeak, DerivedPeak       string
	RecordedSaved, DerivedSaved     string
	RecordedLate, DerivedLate       string
	RecordedRunTime, DerivedRunTime string
}

// The recorded run that a derived one is compared with.
const (
	checkRecorded = "ft.C.16"
	checkBase     = "scaling/ft.C.4"
)

var checkLayout = [2]int{2, 8}

// check derives the recorded run of 16 ranks from that of four.
func (w *nodesWriter) check(ctx context.Context, d *nodesData) error {
	recorded, err := w.base(checkRecorded)
	if err != nil {
		return err
	}
	b, err := w.base(checkBase)
	if err != nil {
		return err
	}
	derived, err := scale.StrongJob(b, recorded.Ranks(), scale.Options{Layout: checkLayout})
	if err != nil {
		return err
	}
	o := w.o.Costs.options(ChartPolicies()...)
	want, err := w.replay(ctx, checkRecorded, scale.Tiled(recorded, 1), o)
	if err != nil {
		return err
	}
	got, err := w.replay(ctx, checkRecorded+" derived from "+b.Name(), derived, o)
	if err != nil {
		return err
	}
	wantBase, gotBase := want.of(replay.LeavePinned), got.of(replay.LeavePinned)
	for _, policy := range ChartPolicies() {
		r, p := want.of(policy), got.of(policy)
		n := float64(recorded.Ranks())
		off := p.AvgPinnedBytes/r.AvgPinnedBytes - 1
		d.Check = append(d.Check, checkRow{
			Policy: policy, Recorded: size(r.AvgPinnedBytes / n), Derived: size(p.AvgPinnedBytes / n), Off: fmt.Sprintf("%+.1f %%", 100*off),
			RecordedPeak: size(float64(r.PeakPinnedBytes) / n), DerivedPeak: size(float64(p.PeakPinnedBytes) / n),
			RecordedSaved: Percent(saved(wantBase.AvgPinnedBytes, r.AvgPinnedBytes)), DerivedSaved: Percent(saved(gotBase.AvgPinnedBytes, p.AvgPinnedBytes)),
			RecordedLate: fmt.Sprintf("%.2f %%", 100*r.LateShare()), DerivedLate: fmt.Sprintf("%.2f %%", 100*p.LateShare()),
			RecordedRunTime: seconds(r.RunNs), DerivedRunTime: seconds(p.RunNs),
		})
	}
	return nil
}

func seconds(ns int64) string { return fmt.Sprintf("%.2f s", float64(ns)/1e9) }
