package report

import (
	"pinwheel/internal/chart"
	"pinwheel/lab/replay"
	"pinwheel/predictor"
)

// Predictors are the policies whose predictions are compared, as in the
// paper's Fig. 5.
func Predictors() []string {
	return []string{replay.Periodicity, replay.Last, replay.Paper, replay.Pinwheel}
}

// ErrorFigure draws the distributions of prediction errors, a panel per run.
func ErrorFigure(runs []*Run) *chart.Figure {
	fig := &chart.Figure{
		Title:    "Prediction errors",
		Subtitle: "share of predictions whose error is below x, relative to the interval between uses; all ranks",
		Columns:  3, PanelHeight: 210,
	}
	for _, r := range runs {
		p := chart.Panel{Title: r.program, XLabel: "error (% of the interval)", XLog: true, XMin: 1e-5, XMax: 10, XUnit: 0.01, YMax: 1}
		for _, policy := range r.options.Policies {
			res := r.of(policy)
			if res == nil || res.Predictions == 0 {
				continue
			}
			s := look(policy)
			var sum int64
			for i, n := range res.Errors.Bins {
				if predictor.AccuracyBinUpper(i) > p.XMax {
					break
				}
				sum += n
				s.X = append(s.X, predictor.AccuracyBinUpper(i))
				s.Y = append(s.Y, float64(sum)/float64(res.Predictions))
			}
			p.Series = append(p.Series, s)
		}
		fig.Panels = append(fig.Panels, p)
	}
	return fig
}
