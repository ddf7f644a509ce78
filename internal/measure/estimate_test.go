package measure

import (
	"math"
	"testing"
)

// The ranks of 10 values for a 95 % interval of the median are 2 and 9 (Conover, table A3).
func TestIntervalIsThatOfTheTables(t *testing.T) {
	for _, c := range []struct {
		n         int
		low, high float64
		coverage  float64
	}{{1, 1, 1, 0}, {3, 1, 3, 0.75}, {5, 1, 5, 0.9375}, {6, 1, 6, 0.96875}, {10, 2, 9, 0.97852}, {20, 6, 15, 0.95861}} {
		var values []float64
		for i := range c.n {
			values = append(values, float64(c.n-i))
		}
		e := Estimated(values)
		if e.Low != c.low || e.High != c.high || math.Abs(e.Coverage-c.coverage) > 1e-5 || e.Median != float64(c.n+1)/2 {
			t.Errorf("%d values: %+v, want %+v", c.n, e, c)
		}
	}
}
