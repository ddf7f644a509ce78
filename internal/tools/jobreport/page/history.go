package page

import (
	"math"

	"pinwheel/internal/report"
)

// history is what one rank measured, in columns of equal time over its run.
type history struct {
	ns                            int64 // of the run
	pinned, parked, stalled, late []float64
}

// columns is how many a chart has: about one for every three pixels.
const columns = 256

// Bounds of what a report can say, which may be damaged.
const (
	longestRunSeconds = 1e9
	highestValue      = 1e18
)

func newHistory(h *report.History, runSeconds float64) history {
	ns := int64(runSeconds * 1e9)
	return history{
		ns:     ns,
		pinned: means(h.Pinned, ns, columns), parked: means(h.Parked, ns, columns),
		stalled: means(h.Stalled, ns, columns), late: totals(h.Late, ns, columns),
	}
}

// totals spreads the values of a series over n columns of [0, ns). Their sum stays.
func totals(s report.Series, ns int64, n int) []float64 {
	out := make([]float64, n)
	width := float64(ns) / float64(n)
	if s.WidthNs <= 0 || !(width > 0) {
		return out
	}
	for i, v := range s.Values {
		from := float64(i) * float64(s.WidthNs)
		if from >= float64(ns) {
			break
		}
		to := min(from+float64(s.WidthNs), float64(ns)) // the last interval ends with the run
		for c := int(from / width); c < n && float64(c)*width < to; c++ {
			overlap := min(to, float64(c+1)*width) - max(from, float64(c)*width)
			if overlap > 0 {
				out[c] += min(max(v, 0), highestValue) * overlap / (to - from)
			}
		}
	}
	return out
}

// means gives n columns of [0, ns) the mean of a series over their time.
func means(s report.Series, ns int64, n int) []float64 {
	weighted := report.Series{WidthNs: s.WidthNs}
	for i, v := range s.Values {
		length := min(float64(s.WidthNs), float64(ns)-float64(i)*float64(s.WidthNs))
		weighted.Values = append(weighted.Values, v*max(length, 0)/float64(ns))
	}
	out := totals(weighted, ns, n)
	for i := range out {
		out[i] *= float64(n)
	}
	return out
}

// over stretches columns of a run of ns to n columns of a longer one; what follows the run is empty: NaN.
func (h *history) over(values []float64, longest int64, n int) []float64 {
	out := means(report.Series{WidthNs: max(h.ns/columns, 1), Values: values}, longest, n)
	for i := range out {
		if float64(i)*float64(longest)/float64(n) >= float64(h.ns) {
			out[i] = math.NaN()
		}
	}
	return out
}
