package report

import (
	"context"
	"fmt"
	"math"
	"slices"

	"pinwheel/mem"
	"pinwheel/replay"
	"pinwheel/replay/chart"
)

// SavingsFigure replays traces and draws what policies save of
// leave-pinned's pinned memory, on average and at the peak.
func SavingsFigure(ctx context.Context, paths []string, o replay.Options) (*chart.Figure, error) {
	if len(o.Policies) == 0 {
		o.Policies = chartPolicies
	}
	if !slices.Contains(o.Policies, replay.LeavePinned) {
		o.Policies = append([]string{replay.LeavePinned}, o.Policies...)
	}
	o.EnsureDefaults()
	runs, err := replayEach(ctx, paths, o)
	if err != nil {
		return nil, err
	}
	return savingsFigure(runs, &o), nil
}

func savingsFigure(runs []*run, o *replay.Options) *chart.Figure {
	fig := &chart.Figure{
		Title:    "Pinned memory saved against leave-pinned",
		Subtitle: fmt.Sprintf("all ranks, %s timeline, registration costs of %s, buffers of %s and more", o.Timeline, o.Provider, mem.FormatBytes(o.ThresholdBytes)),
		Columns:  1, PanelWidth: 780, PanelHeight: 220,
	}
	for _, panel := range []struct {
		title string
		value func(r *replay.Result) float64
	}{
		{"on average (%)", func(r *replay.Result) float64 { return r.AvgPinnedBytes }},
		{"at the peak (%)", func(r *replay.Result) float64 { return float64(r.PeakPinnedBytes) }},
	} {
		p := chart.Panel{Title: panel.title, YUnit: 0.01, YMax: 1}
		for _, policy := range o.Policies {
			if policy == replay.LeavePinned {
				continue
			}
			s := look(policy)
			for _, r := range runs {
				y := math.NaN()
				if res, base := r.of(policy), r.of(replay.LeavePinned); res != nil && base != nil {
					y = saved(panel.value(base), panel.value(res))
				}
				s.Y = append(s.Y, y)
			}
			p.Series = append(p.Series, s)
		}
		for _, r := range runs {
			p.Categories = append(p.Categories, r.program)
		}
		fig.Panels = append(fig.Panels, p)
	}
	return fig
}
