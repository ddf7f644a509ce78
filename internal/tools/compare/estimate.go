package compare

import (
	"math"
	"slices"
)

// confidence is that of every interval, where there are enough values for it.
const confidence = 0.95

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
	for 2*(k+1) <= n && covered(n, k+1) >= confidence {
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
