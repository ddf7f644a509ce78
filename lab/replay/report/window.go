package report

import (
	"context"

	"pinwheel/internal/chart"
	"pinwheel/lab/replay"
	"pinwheel/predictor"
	"pinwheel/schedule"
)

// Lengths of the context window (Fig. 6(a) of the paper), and of the window
// in which the periodicity detector looks for a repetition (Fig. 6(b)).
var (
	contextWindows  = []float64{0, 1, 2, 3, 4, 5, 6, 7, 8}
	detectorWindows = []float64{4, 8, 16, 32, 64, 128, 256, 512}
)

// paperWindow is the context window of the paper, and the default.
const paperWindow = 2

// windowPoint is a line of windows.jsonl: the predictions of a predictor with a window.
type windowPoint struct {
	Trace  string `json:"trace"`
	Policy string `json:"policy"`
	Window int    `json:"window"`
	// SameSignature: the errors are those from one use of a signature to the next one of the same, as the paper has them.
	SameSignature bool    `json:"same_signature,omitempty"`
	Err05         float64 `json:"err_0_5"`
	Err5          float64 `json:"err_5"`
}

// windowFigure draws how much each predictor depends on its window.
func windowFigure(ctx context.Context, paths []string, costs *Costs, step func()) (*chart.Figure, []windowPoint, error) {
	var points []windowPoint
	fig := &chart.Figure{
		Title:    "Sensitivity to the window",
		Subtitle: "all ranks, dedicated timeline, registration costs of " + costs.Name,
		Columns:  2, PanelHeight: 240,
		Panels: []chart.Panel{
			{Title: "paper: predictions within 0.5 %", XLabel: "context window (uses)", XTicks: contextWindows, YMax: 1},
			{Title: "paper: predictions within 5 %", XLabel: "context window (uses)", XTicks: contextWindows, YMax: 1},
			{Title: "pinwheel: share of the possible saving (average)", XLabel: "context window (uses)", XTicks: contextWindows, YMax: 1},
			{Title: "periodicity detector: predictions within 5 %", XLabel: "detector window (uses)", XLog: true, XMin: 4, XMax: 512, XTicks: detectorWindows, YMax: 1},
		},
	}
	for i, path := range paths {
		var lines [4]chart.Series
		point := func(line int, x float64, y *float64) {
			if y != nil {
				lines[line].X, lines[line].Y = append(lines[line].X, x), append(lines[line].Y, *y)
			}
		}
		note := func(r *Run, policy string, window float64) {
			if x := r.of(policy); x.Err05 != nil && x.Err5 != nil {
				points = append(points, windowPoint{Trace: r.program, Policy: policy, Window: int(window), Err05: *x.Err05, Err5: *x.Err5})
			}
		}
		for _, w := range contextWindows {
			o := costs.options(replay.Paper, replay.Pinwheel)
			if o.Window = int(w); w == 0 {
				o.Window = replay.NoWindow
			}
			r, err := replayFile(ctx, path, o)
			if err != nil {
				return nil, nil, err
			}
			lines[0].Name = r.program
			note(r, replay.Paper, w)
			point(0, w, r.of(replay.Paper).Err05)
			point(1, w, r.of(replay.Paper).Err5)
			point(2, w, r.of(replay.Pinwheel).CapturedAvg)
			step()
		}
		for _, w := range detectorWindows {
			o := costs.options(replay.Periodicity)
			o.NewHelper = detector(int(w))
			r, err := replayFile(ctx, path, o)
			if err != nil {
				return nil, nil, err
			}
			note(r, replay.Periodicity, w)
			point(3, w, r.of(replay.Periodicity).Err5)
			step()
		}
		for j := range lines {
			lines[j].Color = chart.Palette[i%len(chart.Palette)]
			fig.Panels[j].Series = append(fig.Panels[j].Series, lines[j])
		}
	}
	return fig, points, nil
}

// detector makes the helper of policy periodicity with a given window.
func detector(window int) func(string, *replay.Options) (predictor.Predictor, schedule.SchedulerOptions, error) {
	return func(policy string, o *replay.Options) (predictor.Predictor, schedule.SchedulerOptions, error) {
		_, so, err := replay.DefaultHelper(policy, o)
		return replay.NewPeriodicity(window), so, err
	}
}
