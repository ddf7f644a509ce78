package calibrate

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"pinwheel/verbs"
)

// Fit is the model of one operation and how well it fits.
type Fit struct {
	verbs.Cost
	// R2 is the coefficient of determination of the weighted regression.
	R2 float64 `json:"r2"`
	// MaxResidual is the largest Residual of the points, without its sign.
	MaxResidual float64 `json:"max_residual"`
	Points      []Point `json:"points,omitempty"`
}

// Point is one size of the ladder.
type Point struct {
	Pages    uint64  `json:"pages"`
	Samples  int     `json:"samples"`
	MedianNs float64 `json:"median_ns"`
	P10Ns    float64 `json:"p10_ns"`
	P90Ns    float64 `json:"p90_ns"`
	// Residual is median / model - 1.
	Residual float64 `json:"residual"`
}

// newPoint condenses the durations in ns of one size; it sorts them.
func newPoint(pages uint64, ns []float64) Point {
	slices.Sort(ns)
	q := func(p float64) float64 { return stat.Quantile(p, stat.Empirical, ns, nil) }
	return Point{Pages: pages, Samples: len(ns), MedianNs: q(0.5), P10Ns: q(0.1), P90Ns: q(0.9)}
}

// fit regresses the medians on the page counts. It needs two different sizes
// and takes time that passed: medians above zero.
func fit(points []Point) (Fit, error) {
	x, y, w := make([]float64, len(points)), make([]float64, len(points)), make([]float64, len(points))
	for i, p := range points {
		if p.MedianNs <= 0 {
			return Fit{}, fmt.Errorf("calibration: %d pages took no time", p.Pages)
		}
		x[i], y[i], w[i] = float64(p.Pages), p.MedianNs, 1/(p.MedianNs*p.MedianNs)
	}
	if len(points) < 2 || slices.Min(x) == slices.Max(x) {
		return Fit{}, fmt.Errorf("calibration: %d sizes, need two different ones", len(points))
	}
	b, a := stat.LinearRegression(x, y, w, false)
	if b < 0 { // faster than linear growth; no operation has a negative fixed cost
		b, a = stat.LinearRegression(x, y, w, true)
	}
	if a < 0 { // noise around a cost that does not depend on pages
		a, b = 0, stat.Mean(y, w)
	}
	f := Fit{Cost: verbs.Cost{PerPageNs: round(a, 4), FixedNs: round(b, 1)}}
	if slices.Min(y) < slices.Max(y) { // else there is nothing to determine
		f.R2 = round(stat.RSquared(x, y, w, b, a), 6)
	}
	for i, p := range points {
		p.Residual = round(p.MedianNs/(a*x[i]+b)-1, 4)
		f.MaxResidual = max(f.MaxResidual, math.Abs(p.Residual))
		f.Points = append(f.Points, p)
	}
	return f, nil
}

// round keeps digits after the point: figures in a file are no more exact than that.
func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}
