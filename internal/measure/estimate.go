// Package measure has what all of our benchmarks make of their numbers: medians with their intervals, processor time, and
// claims that are held against them.
package measure

import (
	"fmt"
	"math"
	"slices"
)

// Confidence is that of every interval, where there are enough values for it.
const Confidence = 0.95

// FewestRounds is how many values an interval with that confidence takes.
const FewestRounds = 6

// Estimate is a median with its confidence interval, by ranks: the narrowest pair of the
// k-th smallest and the k-th largest value between which the true median lies with a
// probability of at least 95 %, whatever the distribution (Conover, Practical
// Nonparametric Statistics, 3.2). Fewer than six values can't give that; their interval
// reaches from the least to the greatest, and Coverage says what it is worth.
type Estimate struct {
	Median   float64 `json:"median"`
	Low      float64 `json:"low"`
	High     float64 `json:"high"`
	Coverage float64 `json:"coverage"` // probability that the median is in the interval
	N        int     `json:"n"`
}

// Estimated returns the estimate of at least one value.
func Estimated(values []float64) Estimate {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	k, coverage := 1, covered(n, 1)
	for 2*(k+1) <= n && covered(n, k+1) >= Confidence {
		k++
		coverage = covered(n, k)
	}
	return Estimate{Median: (v[(n-1)/2] + v[n/2]) / 2, Low: v[k-1], High: v[n-k], Coverage: coverage, N: n}
}

// covered is the probability that the median lies between the k-th smallest and the k-th largest of n values:
// that neither more than n-k of them lie on one side of it.
func covered(n, k int) float64 {
	tail, term := 0.0, math.Pow(0.5, float64(n)) // of the binomial distribution
	for i := range k {
		tail += term
		term *= float64(n-i) / float64(i+1)
	}
	return 1 - 2*tail
}

// Median returns that of at least one value: the mean of the two in the middle, if their number is even.
func Median(values []float64) float64 { return Estimated(values).Median }

// Text prints the estimate by a format for each number.
func (e Estimate) Text(format string) string {
	if e.N < 2 {
		return fmt.Sprintf(format+" (one round)", e.Median)
	}
	text := fmt.Sprintf(format+" ("+format+" to "+format, e.Median, e.Low, e.High)
	if e.Coverage < Confidence {
		return text + fmt.Sprintf(", %.0f %% interval)", 100*e.Coverage)
	}
	return text + ")"
}

// Percent prints a ratio as its difference from 1.
func (e Estimate) Percent() string {
	e.Median, e.Low, e.High = 100*(e.Median-1), 100*(e.Low-1), 100*(e.High-1)
	return e.Text("%+.1f %%")
}

// Change prints a ratio as its difference from 1, under a heading that says what the interval is.
func (e Estimate) Change() string {
	if e.N < 2 {
		return fmt.Sprintf("%+.1f %%", 100*(e.Median-1))
	}
	return fmt.Sprintf("%+.1f %% (%+.1f to %+.1f)", 100*(e.Median-1), 100*(e.Low-1), 100*(e.High-1))
}

// Share prints a share under such a heading.
func (e Estimate) Share() string {
	if e.N < 2 {
		return fmt.Sprintf("%.0f %%", 100*e.Median)
	}
	return fmt.Sprintf("%.0f %% (%.0f to %.0f)", 100*e.Median, 100*e.Low, 100*e.High)
}
