package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pinwheel/internal/chart"
	"pinwheel/internal/usage"
	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/trace"
)

// ChartPolicies are shown together in figures of memory.
func ChartPolicies() []string {
	return []string{replay.LeavePinned, replay.Paper, replay.Pinwheel, replay.Oracle}
}

const (
	mib            = 1 << 20
	overviewPoints = 300 // a whole run is drawn as means of so many intervals
	closeUpSteps   = 2   // iterations in the close-up, as in the paper's Fig. 11
)

// ErrPastEnd is returned by MemoryFigure for a window that begins after the run.
var ErrPastEnd = errors.New("the window begins after the end of the run")

// MemoryFigure replays a trace and draws what one rank pins over time: the
// window of o, if it has one; otherwise the whole run and, of benchmarks
// that are known, two iterations from its middle.
func MemoryFigure(ctx context.Context, f *trace.File, rank int, o replay.Options) (*chart.Figure, error) {
	if len(o.Policies) == 0 {
		o.Policies = ChartPolicies()
	}
	window := o.SeriesFromNs != 0 || o.SeriesToNs != 0
	o.EnsureDefaults()
	r, err := Replay(ctx, f, o)
	if err != nil {
		return nil, err
	}
	first := r.find(o.Policies[0], rank)
	if first == nil {
		return nil, fmt.Errorf("%s has no rank %d", r.program, rank)
	}
	if o.SeriesFromNs >= first.RunNs && window {
		return nil, fmt.Errorf("%s: %w: %v of %v", r.program, ErrPastEnd, time.Duration(o.SeriesFromNs), time.Duration(first.RunNs))
	}
	fig := &chart.Figure{
		Title:    "Pinned memory over time: " + r.program,
		Subtitle: fmt.Sprintf("rank %d, %s timeline, registration costs of %s, buffers of %s and more", rank, o.Timeline, o.Provider, mem.FormatBytes(o.ThresholdBytes)),
	}
	if window {
		fig.Panels = []chart.Panel{memoryPanel(r, rank, o.Policies, "", peaks)}
		return fig, nil
	}
	fig.Panels = []chart.Panel{memoryPanel(r, rank, o.Policies, "whole run (means)", overview)}
	steps := int64(benchmarkOf(r.program).steps)
	if steps <= closeUpSteps {
		return fig, nil
	}
	start := firstPinned(&first.Pinned)
	step := (first.RunNs - start) / steps
	o.SeriesFromNs = start + step*(steps-closeUpSteps)/2
	o.SeriesToNs = o.SeriesFromNs + step*closeUpSteps
	if r, err = Replay(ctx, f, o); err != nil {
		return nil, err
	}
	p := memoryPanel(r, rank, o.Policies, fmt.Sprintf("%d of %d iterations", closeUpSteps, steps), peaks)
	p.XMin, p.XMax = float64(o.SeriesFromNs), float64(o.SeriesToNs)
	fig.Columns, fig.Panels = 2, append(fig.Panels, p)
	return fig, nil
}

func memoryFigureOf(ctx context.Context, path string, rank int, o replay.Options) (*chart.Figure, error) {
	f, err := trace.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	return MemoryFigure(ctx, f, rank, o)
}

func memoryPanel(r *Run, rank int, policies []string, title string, points func(s *usage.Series) (x, y []float64)) chart.Panel {
	p := chart.Panel{Title: title, XLabel: "time (s)", YLabel: "pinned (MiB)", XUnit: 1e9, YUnit: mib}
	for _, policy := range policies {
		s := look(policy)
		s.Step = true
		s.Fill = policy == replay.Pinwheel
		s.X, s.Y = points(&r.find(policy, rank).Pinned)
		p.Series = append(p.Series, s)
	}
	return p
}

// firstPinned is when anything is pinned for the first time: about when the
// iterations begin.
func firstPinned(s *usage.Series) int64 {
	for i, v := range s.Peak {
		if v > 0 {
			return s.FromNs + int64(i)*s.WidthNs
		}
	}
	return s.FromNs
}

// overview returns the means of about overviewPoints intervals.
func overview(s *usage.Series) (x, y []float64) {
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
func peaks(s *usage.Series) (x, y []float64) {
	for i, v := range s.Peak {
		x = append(x, float64(s.FromNs+int64(i)*s.WidthNs))
		y = append(y, float64(v))
	}
	return closeSteps(s, x, y)
}

// closeSteps lets the last step last until the end of the window.
func closeSteps(s *usage.Series, x, y []float64) ([]float64, []float64) {
	if len(x) == 0 {
		return x, y
	}
	return append(x, float64(s.ToNs)), append(y, y[len(y)-1])
}
