package report

import (
	"fmt"
	"math"

	"pinwheel/internal/chart"
	"pinwheel/lab/replay"
	"pinwheel/mem"
)

// Conditions say what the replays of a figure or page have in common.
func Conditions(o *replay.Options) string {
	return fmt.Sprintf("all ranks, %s timeline, registration costs of %s, buffers of %s and more", o.Timeline, o.Provider,
		mem.FormatBytes(o.ThresholdBytes))
}

// SavingsFigure draws what policies save of leave-pinned's pinned memory, on
// average and at the peak, and what that costs in run time. The runs are of the same options, with
// leave-pinned among the policies.
func SavingsFigure(runs []*Run, policies []string) *chart.Figure {
	if len(runs) == 0 {
		return &chart.Figure{}
	}
	fig := &chart.Figure{
		Title:    "Pinned memory saved against leave-pinned, and the run time that it costs",
		Subtitle: Conditions(&runs[0].options),
		Columns:  1, PanelWidth: 780, PanelHeight: 220,
	}
	for _, panel := range []struct {
		title string
		value func(r, base *replay.Result) float64
		yMax  float64
	}{
		{"saved on average (%)", func(r, base *replay.Result) float64 { return saved(base.AvgPinnedBytes, r.AvgPinnedBytes) }, 1},
		{"saved at the peak (%)", func(r, base *replay.Result) float64 {
			return saved(float64(base.PeakPinnedBytes), float64(r.PeakPinnedBytes))
		}, 1},
		{"longer run time (%)", func(r, base *replay.Result) float64 {
			return max(float64(r.RunNs)/float64(base.RunNs)-1, 0)
		}, 0},
	} {
		p := chart.Panel{Title: panel.title, YUnit: 0.01, YMax: panel.yMax}
		for _, policy := range policies {
			if policy == replay.LeavePinned {
				continue
			}
			s := look(policy)
			for _, r := range runs {
				y := math.NaN()
				if res, base := r.of(policy), r.of(replay.LeavePinned); res != nil && base != nil {
					y = panel.value(res, base)
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
