package report

import (
	"cmp"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"pinwheel/internal/chart"
	"pinwheel/internal/settings"
	"pinwheel/lab/replay"
)

// FrontierPolicies are those that a frontier compares: pinwheel is a curve, the others are points.
func FrontierPolicies() []string {
	return []string{replay.LeavePinned, replay.OnDemand, replay.Paper, replay.PaperStrict, replay.Pinwheel, replay.Oracle}
}

// FrontierPoint is what a policy saves and costs in one trace, beside leave-pinned, all ranks together.
type FrontierPoint struct {
	Trace  string `json:"trace"`
	Policy string `json:"policy"`
	// Cost is what policy pinwheel may cost (replay.Options.Cost); 0 for others.
	Cost float64 `json:"cost,omitempty"`
	// Slowdown is that of the run, as a factor, with the processor time of a helper that has no core of its own.
	Slowdown float64 `json:"slowdown"`
	// SavedAvg and SavedPeak are shares of what leave-pinned pins, CapturedAvg is one of what the oracle saves of it, nil
	// where that is nothing.
	SavedAvg    float64  `json:"saved_avg"`
	SavedPeak   float64  `json:"saved_peak"`
	CapturedAvg *float64 `json:"captured_avg"`
}

// FrontierPoints are the points of one trace, whose results are of FrontierPolicies and Options.CostCurve.
func FrontierPoints(rs []replay.Result) (ps []FrontierPoint) {
	run := &Run{results: rs}
	base := run.of(replay.LeavePinned)
	for i := range rs {
		r := &rs[i]
		if r.Rank != replay.AllRanks || r.Node != nil || r.Slowdown == nil {
			continue
		}
		ps = append(ps, FrontierPoint{
			Trace: r.Trace, Policy: r.Policy, Cost: r.Cost, CapturedAvg: r.CapturedAvg,
			Slowdown:  *r.Slowdown + helpersCost(r, run.ranks()),
			SavedAvg:  saved(base.AvgPinnedBytes, r.AvgPinnedBytes),
			SavedPeak: saved(float64(base.PeakPinnedBytes), float64(r.PeakPinnedBytes)),
		})
	}
	return ps
}

// helpersCost is what helpers without a core of their own take of their ranks' time, as a share of it.
func helpersCost(r *replay.Result, ranks int) float64 {
	if r.HelperShare == 0 || r.HelperShare == 1 {
		return 0
	}
	return float64(r.HelperCPUNs) / float64(ranks) / float64(max(r.RunNs, 1))
}

// Name is the policy, and what it may cost.
func (p *FrontierPoint) Name() string {
	if p.Cost == 0 {
		return p.Policy
	}
	return p.Policy + ", " + settings.FormatShare(p.Cost)
}

// Program is the program of the trace without its directory and arguments.
func (p *FrontierPoint) Program() string {
	return filepath.Base(cmp.Or(strings.Split(p.Trace, " ")[0], p.Trace))
}

// FrontierMean is the mean of a policy over traces; what is captured is of those in which something can be.
type FrontierMean struct {
	FrontierPoint         // without a trace
	Worst         float64 // the greatest slowdown
}

// FrontierMeans are the means of each policy and cost, in the order of the first trace.
func FrontierMeans(ps []FrontierPoint) (means []FrontierMean) {
	for i := range ps {
		if p := &ps[i]; !slices.ContainsFunc(means, func(m FrontierMean) bool { return m.Name() == p.Name() }) {
			means = append(means, meanOf(ps, p))
		}
	}
	return means
}

func meanOf(all []FrontierPoint, like *FrontierPoint) FrontierMean {
	ps := slices.DeleteFunc(slices.Clone(all), func(p FrontierPoint) bool { return p.Name() != like.Name() })
	m := FrontierMean{FrontierPoint: FrontierPoint{Policy: like.Policy, Cost: like.Cost}}
	m.Slowdown = *meanBy(ps, func(p *FrontierPoint) *float64 { return &p.Slowdown })
	m.SavedAvg = *meanBy(ps, func(p *FrontierPoint) *float64 { return &p.SavedAvg })
	m.SavedPeak = *meanBy(ps, func(p *FrontierPoint) *float64 { return &p.SavedPeak })
	m.CapturedAvg = meanBy(ps, func(p *FrontierPoint) *float64 { return p.CapturedAvg })
	for i := range ps {
		m.Worst = max(m.Worst, ps[i].Slowdown)
	}
	return m
}

// meanBy is the mean of a value of points, of those that have one; nil if none has.
func meanBy(ps []FrontierPoint, value func(*FrontierPoint) *float64) *float64 {
	var sum, n float64
	for i := range ps {
		if v := value(&ps[i]); v != nil {
			sum, n = sum+*v, n+1
		}
	}
	if n == 0 {
		return nil
	}
	sum /= n
	return &sum
}

// leastCost is the slowdown at the left edge of FrontierFigure: what costs less lies on it.
const leastCost = 1e-5

// FrontierFigure draws, for each trace, the saving of each point over its slowdown.
func FrontierFigure(ps []FrontierPoint, subtitle string) *chart.Figure {
	fig := &chart.Figure{
		Title:    "Memory saved, and what it costs",
		Subtitle: subtitle + "; at the left edge is what costs less than 0.001 %",
		Columns:  3, PanelWidth: 300, PanelHeight: 220,
	}
	most := leastCost
	for i := range ps {
		most = max(most, ps[i].Slowdown-1)
	}
	for len(ps) > 0 {
		n := 1
		for n < len(ps) && ps[n].Trace == ps[0].Trace {
			n++
		}
		fig.Panels = append(fig.Panels, chart.Panel{
			Title: ps[0].Program(), XLabel: "slowdown (%)", YLabel: "saved of what can be (%)", XUnit: 0.01, YUnit: 0.01,
			XLog: true, XMin: leastCost, XMax: math.Pow(10, math.Ceil(math.Log10(most))),
			YMax: 1, Series: frontierSeries(ps[:n]),
		})
		ps = ps[n:]
	}
	return fig
}

// frontierSeries are the points of one trace, those of a policy together.
func frontierSeries(ps []FrontierPoint) (all []chart.Series) {
	for _, p := range ps {
		if n := len(all); n == 0 || all[n-1].Name != p.Policy {
			s := look(p.Policy)
			s.Dots = true
			all = append(all, s)
		}
		if s := &all[len(all)-1]; p.CapturedAvg != nil {
			s.X, s.Y = append(s.X, p.Slowdown-1), append(s.Y, *p.CapturedAvg)
		}
	}
	return all
}
