package report

import (
	"fmt"
	"slices"

	"pinwheel/internal/chart"
	"pinwheel/lab/replay/explain"
	"pinwheel/mem"
)

// causeColors are those of explain's causes, in their order.
var causeColors = [explain.Causes]string{
	chart.Grey, chart.Black, chart.Purple, chart.Vermilion, chart.Orange, chart.Blue, chart.Sky, chart.Green, "#8c6d31", "#d9d9d9",
}

// LossFigure draws what was missed of the possible saving, a bar for each trace, by cause.
func LossFigure(xs []*explain.Explanation) *chart.Figure {
	p := chart.Panel{YLabel: "missed (% of the possible saving)", YUnit: 0.01, Stacked: true}
	for _, x := range xs {
		p.Categories = append(p.Categories, x.Result.Trace)
	}
	for c := range explain.Cause(explain.Causes) {
		s := chart.Series{Name: c.String(), Color: causeColors[c]}
		for _, x := range xs {
			s.Y = append(s.Y, x.Missed[c])
		}
		if slices.Max(s.Y) > leastBar {
			p.Series = append(p.Series, s)
		}
	}
	f := &chart.Figure{Title: "Where the possible saving went", Panels: []chart.Panel{p}, PanelWidth: max(480, 72*float64(len(xs))), PanelHeight: 320}
	if len(xs) > 0 {
		r := &xs[0].Result
		f.Subtitle = fmt.Sprintf("policy %s, %s timeline, registration costs of %s", r.Policy, r.Timeline, r.Provider)
	}
	return f
}

// leastBar is the share below which a cause does not show in a figure.
const leastBar = 5e-4

// closeUpCycles is how many uses the close-up of RegionFigure shows.
const closeUpCycles = 6

// RegionFigure draws the uses of one region of a rank: how long before each need it was predicted and registered, and some uses
// from the middle in detail.
func RegionFigure(x *explain.Explanation, rank int, id mem.RegionID, cycles []explain.Cycle) *chart.Figure {
	f := &chart.Figure{
		Title: fmt.Sprintf("Region %d of rank %d of %s", id, rank, x.Result.Trace), Columns: 1,
		Subtitle: fmt.Sprintf("policy %s, %s timeline, registration costs of %s", x.Result.Policy, x.Result.Timeline, x.Result.Provider),
	}
	f.Panels = []chart.Panel{leadPanel(cycles), closeUpPanel(cycles)}
	return f
}

// leadPanel shows how long before each need it was expected, to be ready, and registered.
func leadPanel(cycles []explain.Cycle) chart.Panel {
	expected := chart.Series{Name: "need expected", Color: chart.Green, Dash: "2 2"}
	deadline := chart.Series{Name: "deadline", Color: chart.Vermilion}
	registered := chart.Series{Name: "registered", Color: chart.Blue}
	for _, c := range cycles {
		add := func(s *chart.Series, ns int64, known bool) {
			if known {
				s.X, s.Y = append(s.X, float64(c.NeedNs)), append(s.Y, float64(c.NeedNs-ns))
			}
		}
		add(&expected, c.ExpectedNs, c.Predicted)
		add(&deadline, c.DeadlineNs, c.Predicted && !c.Gated)
		add(&registered, c.RegisterNs, c.RegisterNs > 0)
	}
	return chart.Panel{
		Title: "before each need", XLabel: "time of the need (s)", YLabel: "before the need (ms)", XUnit: 1e9, YUnit: 1e6,
		Series: []chart.Series{expected, deadline, registered},
	}
}

// closeUpPanel shows some uses from the middle, a lane for each thing that happens.
func closeUpPanel(cycles []explain.Cycle) chart.Panel {
	first := max(0, (len(cycles)-closeUpCycles)/2)
	cycles = cycles[first:min(len(cycles), first+closeUpCycles)]
	used := chart.Series{Color: chart.Black, Step: true}
	registered := chart.Series{Color: chart.Blue, Step: true}
	deadlines := chart.Series{Color: chart.Vermilion, Step: true}
	made := chart.Series{Color: chart.Green, Step: true}
	put := func(s *chart.Series, lane float64, from, to int64) {
		s.X = append(s.X, float64(from), float64(from), float64(to))
		s.Y = append(s.Y, lane+0.1, lane+0.9, lane+0.1)
	}
	sinceNs := cycles[0].NeedNs
	for i, c := range cycles {
		if i > 0 && c.GoneNs > 0 {
			put(&registered, 1, sinceNs, c.GoneNs)
			sinceNs = c.NeedNs
			if c.RegisterNs > 0 {
				sinceNs = min(c.RegisterNs, c.NeedNs)
			}
		}
		put(&used, 0, c.NeedNs, c.EndNs)
		if i > 0 && c.Predicted && !c.Gated {
			put(&made, 2, c.MadeNs, c.MadeNs)
			put(&deadlines, 3, c.DeadlineNs, c.DeadlineNs)
		}
	}
	endNs := cycles[len(cycles)-1].EndNs
	put(&registered, 1, sinceNs, endNs)
	return chart.Panel{
		Title:  fmt.Sprintf("uses %d to %d", cycles[0].Use, cycles[len(cycles)-1].Use),
		XLabel: "time (s)", XUnit: 1e9, XMin: float64(cycles[0].NeedNs), XMax: float64(endNs),
		Lanes: []string{"in use", "registered", "predicted", "deadline"}, Series: []chart.Series{used, registered, made, deadlines},
	}
}
