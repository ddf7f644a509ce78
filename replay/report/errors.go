package report

import (
	"pinwheel/replay"
	"pinwheel/replay/chart"
)

// predictors are the policies whose predictions are compared, as in the
// paper's Fig. 5.
var predictors = []string{replay.Periodicity, replay.Last, replay.Paper, replay.Pinwheel}

// errorFigure draws the distribution of prediction errors, a panel per run.
func errorFigure(runs []*run) *chart.Figure {
	fig := &chart.Figure{
		Title:    "Prediction errors",
		Subtitle: "share of predictions whose error is below x, relative to the interval between uses; all ranks, dedicated timeline",
		Columns:  3, PanelHeight: 210,
	}
	for _, r := range runs {
		p := chart.Panel{Title: r.program, XLabel: "error (% of the interval)", XLog: true, XMin: 1e-5, XMax: 10, XUnit: 0.01, YMax: 1}
		for _, policy := range predictors {
			res := r.of(policy)
			if res == nil || res.Predictions == 0 {
				continue
			}
			s := look(policy)
			var sum int64
			for i, n := range res.Errors.Bins {
				sum += n
				s.X = append(s.X, res.Errors.UpperBound(i))
				s.Y = append(s.Y, float64(sum)/float64(res.Predictions))
			}
			s.Y[len(s.Y)-1] = 1 // the last bin has no upper bound
			p.Series = append(p.Series, s)
		}
		fig.Panels = append(fig.Panels, p)
	}
	return fig
}
