package chart

import (
	"math"
	"strconv"
)

// axis maps values to a length in pixels.
type axis struct {
	lo, hi float64 // in the scale: logarithms of a log axis
	log    bool
	px     float64
}

func (a axis) scale(v float64) float64 {
	if a.log {
		return math.Log10(max(v, math.SmallestNonzeroFloat64))
	}
	return v
}

// at returns the distance of v from the start of the axis, within the axis.
func (a axis) at(v float64) float64 {
	if a.hi <= a.lo {
		return 0
	}
	return min(max((a.scale(v)-a.lo)/(a.hi-a.lo), 0), 1) * a.px
}

// tick is a labelled value.
type tick struct {
	v     float64
	label string
}

// ticks returns about n values that are round when divided by the unit, as
// their labels are: multiples of 1, 2 or 5 times a power of ten, or powers of
// ten on a log axis.
func (a axis) ticks(n int, unit float64) []tick {
	var ts []tick
	if a.log {
		shift := math.Log10(unit)
		for e := math.Ceil(a.lo - shift - 1e-9); e <= a.hi-shift+1e-9; e++ {
			v := math.Pow(10, e)
			ts = append(ts, tick{v * unit, formatTick(v, v)})
		}
		return ts
	}
	if a.hi <= a.lo {
		return nil
	}
	lo, hi := a.lo/unit, a.hi/unit
	step := roundStep((hi - lo) / float64(n))
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi+step*1e-9; i++ {
		ts = append(ts, tick{i * step * unit, formatTick(i*step, step)})
	}
	return ts
}

// roundStep returns 1, 2 or 5 times a power of ten: the first that is not far below v.
func roundStep(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*p*1.42 >= v {
			return m * p
		}
	}
	return 10 * p
}

// formatTick prints v with the digits that a step of the given size needs.
func formatTick(v, step float64) string {
	digits := max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
	return strconv.FormatFloat(v+0, 'f', digits, 64) // +0 turns -0 into 0
}
