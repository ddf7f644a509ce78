package report

import (
	"context"
	"fmt"

	"pinwheel/replay"
	"pinwheel/replay/chart"
)

// chartPolicies are shown together in every figure of memory over time.
var chartPolicies = []string{replay.LeavePinned, replay.Paper, replay.Pinwheel, replay.Oracle}

const (
	mib            = 1 << 20
	overviewPoints = 300 // a whole run is drawn as means of so many intervals
	closeUpSteps   = 2   // iterations in the close-up, as in the paper's Fig. 11
)

// memoryFigure draws pinned memory over time of one rank: the whole run, and
// two iterations from its middle.
func memoryFigure(ctx context.Context, path string, costs *Costs, rank int) (*chart.Figure, error) {
	whole, err := replayAll(ctx, path, func(o *replay.Options) { costs.with(o, chartPolicies...) })
	if err != nil {
		return nil, err
	}
	base := whole.find(replay.LeavePinned, rank)
	fig := &chart.Figure{
		Title:    "Pinned memory over time: " + whole.program,
		Subtitle: fmt.Sprintf("rank %d, dedicated timeline, registration costs of %s, buffers of 16 KiB and more", rank, costs.Name),
		Columns:  2,
	}
	fig.Panels = append(fig.Panels, memoryPanel(whole, rank, "whole run (means)", overview))
	b := benchmarkOf(whole.program)
	if b.steps <= closeUpSteps {
		return fig, nil
	}
	step := base.RunNs / int64(b.steps)
	from := base.RunNs/2 - step*closeUpSteps/2
	closeUp, err := replayAll(ctx, path, func(o *replay.Options) {
		costs.with(o, chartPolicies...)
		o.SeriesFromNs, o.SeriesToNs = from, from+closeUpSteps*step
	})
	if err != nil {
		return nil, err
	}
	p := memoryPanel(closeUp, rank, fmt.Sprintf("%d of %d iterations", closeUpSteps, b.steps), peaks)
	p.XMin, p.XMax = float64(from), float64(from+closeUpSteps*step)
	fig.Panels = append(fig.Panels, p)
	return fig, nil
}

func memoryPanel(r *run, rank int, title string, points func(s *replay.Series) (x, y []float64)) chart.Panel {
	p := chart.Panel{Title: title, XLabel: "time (s)", YLabel: "pinned (MiB)", XUnit: 1e9, YUnit: mib}
	for _, policy := range chartPolicies {
		s := look(policy)
		s.Step = true
		s.Fill = policy == replay.Pinwheel
		s.X, s.Y = points(&r.find(policy, rank).Pinned)
		p.Series = append(p.Series, s)
	}
	return p
}

// overview returns the means of about overviewPoints intervals.
func overview(s *replay.Series) (x, y []float64) {
	n := len(s.Peak)
	k := max((n+overviewPoints-1)/overviewPoints, 1)
	for i := 0; i < n; i += k {
		end := min(i+k, n)
		var sum float64
		for j := i; j < end; j++ {
			sum += s.Mean(j)
		}
		x = append(x, float64(s.FromNs+int64(i)*s.WidthNs))
		y = append(y, sum/float64(end-i))
	}
	return closeSteps(s, x, y)
}

// peaks returns the maximum in every bin.
func peaks(s *replay.Series) (x, y []float64) {
	for i, v := range s.Peak {
		x = append(x, float64(s.FromNs+int64(i)*s.WidthNs))
		y = append(y, float64(v))
	}
	return closeSteps(s, x, y)
}

// closeSteps lets the last step last until the end of the window.
func closeSteps(s *replay.Series, x, y []float64) ([]float64, []float64) {
	if len(x) == 0 {
		return x, y
	}
	return append(x, float64(s.ToNs)), append(y, y[len(y)-1])
}
