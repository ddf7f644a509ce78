package calibrate

import (
	"math"
	"math/rand/v2"
	"testing"

	"pinwheel/verbs"
)

// ladder returns points as measured of a known cost, with noise(i) added to
// sample i of each.
func ladder(c verbs.Cost, noise func(i int) float64) (points []Point) {
	for pages := uint64(1); pages <= 1<<15; pages *= 2 {
		ns := make([]float64, 99)
		for i := range ns {
			ns[i] = (c.PerPageNs*float64(pages) + c.FixedNs) * (1 + noise(i))
		}
		points = append(points, newPoint(pages, ns))
	}
	return points
}

func near(got, want, tolerance float64) bool { return math.Abs(got/want-1) <= tolerance }

func TestFitFindsTheCostBehindNoiseAndDisturbances(t *testing.T) {
	want := verbs.Cost{PerPageNs: 62, FixedNs: 590}
	rng := rand.New(rand.NewPCG(1, 1))
	f, err := fit(ladder(want, func(i int) float64 {
		if i%10 == 0 {
			return 50 // the processor was taken away
		}
		return 0.05 * rng.NormFloat64()
	}))
	if err != nil {
		t.Fatal(err)
	}
	if !near(f.PerPageNs, want.PerPageNs, 0.03) || !near(f.FixedNs, want.FixedNs, 0.03) || f.R2 < 0.999 || f.MaxResidual > 0.03 {
		t.Errorf("fitted %+v, R2 %v, max residual %v; want %+v", f.Cost, f.R2, f.MaxResidual, want)
	}
}

func TestExactDataHasNoResidual(t *testing.T) {
	want := verbs.Cost{PerPageNs: 250, FixedNs: 16_000}
	f, err := fit(ladder(want, func(int) float64 { return 0 }))
	if err != nil || f.Cost != want || f.R2 != 1 || f.MaxResidual != 0 {
		t.Errorf("fitted %+v, %v", f, err)
	}
	if n := len(f.Points); n != 16 || f.Points[15].Samples != 99 || f.Points[15].P10Ns != f.Points[15].P90Ns {
		t.Errorf("points %+v", f.Points)
	}
}

func TestBadFitShowsInR2AndResiduals(t *testing.T) {
	points := ladder(verbs.Cost{PerPageNs: 1}, func(int) float64 { return 0 })
	for i := range points {
		points[i].MedianNs = float64(points[i].Pages * points[i].Pages)
	}
	f, err := fit(points)
	if err != nil {
		t.Fatal(err)
	}
	if f.R2 > 0.9 || f.MaxResidual < 0.5 || f.FixedNs < 0 || f.PerPageNs < 0 {
		t.Errorf("a quadratic cost was fitted as %+v with R2 %v, max residual %v", f.Cost, f.R2, f.MaxResidual)
	}
}

func TestCostThatDoesNotGrowIsConstant(t *testing.T) {
	f, err := fit([]Point{{Pages: 1, MedianNs: 110}, {Pages: 2, MedianNs: 100}, {Pages: 1000, MedianNs: 90}})
	if err != nil || f.PerPageNs != 0 || f.FixedNs < 90 || f.FixedNs > 110 {
		t.Errorf("fitted %+v, %v", f.Cost, err)
	}
	f, err = fit([]Point{{Pages: 1, MedianNs: 100}, {Pages: 2, MedianNs: 100}})
	if err != nil || f.Cost != (verbs.Cost{FixedNs: 100}) || math.IsNaN(f.R2) {
		t.Errorf("fitted %+v, %v", f, err)
	}
}

func TestTooLittleDataIsRefused(t *testing.T) {
	for name, points := range map[string][]Point{
		"none":     nil,
		"one size": {{Pages: 4, MedianNs: 10}, {Pages: 4, MedianNs: 11}},
		"no time":  {{Pages: 4, MedianNs: 10}, {Pages: 8}},
	} {
		if f, err := fit(points); err == nil {
			t.Errorf("%s: fitted %+v", name, f)
		}
	}
}
