package schedule

import (
	"encoding/json"
	"fmt"
	"math/bits"
)

// Four buckets for each doubling, so that a quantile is known to a fifth, from 256 ns to 17 s.
const (
	leastBits     = 8 // below 256 ns all is one bucket
	perDoubling   = 4
	bucketsASide  = 1 + 26*perDoubling
	bucketsInAll  = 2 * bucketsASide
	doublingShift = leastBits - 2 // 1<<2 is perDoubling
)

// Histogram says how many times had which distance from a plan, in nanoseconds: negative ones were early. It is a
// plain value, and its zero value is empty.
type Histogram struct {
	counts [bucketsInAll]int64 // from the earliest to the latest
	max    int64
}

// bucketOf returns the bucket of a distance.
func bucketOf(ns int64) int {
	if ns < 0 {
		return bucketsASide - 1 - sideBucket(uint64(-ns))
	}
	return bucketsASide + sideBucket(uint64(ns))
}

func sideBucket(ns uint64) int {
	n := bits.Len64(ns)
	if n <= leastBits {
		return 0
	}
	doubling := n - leastBits - 1
	part := int(ns>>(n-3)) % perDoubling
	return min(1+doubling*perDoubling+part, bucketsASide-1)
}

// edge is the least distance from the plan in a bucket of one side.
func edge(side int) int64 {
	if side == 0 {
		return 0
	}
	doubling, part := (side-1)/perDoubling, (side-1)%perDoubling
	return int64(perDoubling+part) << (doubling + doublingShift)
}

// Count returns how many there are.
func (h *Histogram) Count() (n int64) {
	for _, c := range h.counts {
		n += c
	}
	return n
}

// MaxNs returns the latest one exactly; 0 if none was late.
func (h *Histogram) MaxNs() int64 { return h.max }

// QuantileNs returns a bound that a share q of all are below or at: the upper edge of their bucket, and 0 if
// there are none.
func (h *Histogram) QuantileNs(q float64) int64 {
	rank := q * float64(h.Count())
	if rank == 0 {
		return 0
	}
	for i, c := range h.counts {
		if rank -= float64(c); rank > 0 {
			continue
		}
		if i < bucketsASide {
			return -edge(bucketsASide - 1 - i)
		}
		return min(edge(i-bucketsASide+1), max(h.max, 0))
	}
	return h.max
}

// Note takes in one distance from the plan. It allocates nothing.
func (h *Histogram) Note(ns int64) {
	h.counts[bucketOf(ns)]++
	h.max = max(h.max, ns)
}

// Add takes in another histogram.
func (h *Histogram) Add(o *Histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.max = max(h.max, o.max)
}

// histogramJSON is how a report has it.
type histogramJSON struct {
	N      int64      `json:"n"`
	P50Ns  int64      `json:"p50_ns"`
	P99Ns  int64      `json:"p99_ns"`
	MaxNs  int64      `json:"max_ns"`
	Counts [][2]int64 `json:"counts"` // number of a bucket, and how many are in it
}

// MarshalJSON implements json.Marshaler.
func (h Histogram) MarshalJSON() ([]byte, error) {
	j := histogramJSON{N: h.Count(), P50Ns: h.QuantileNs(0.5), P99Ns: h.QuantileNs(0.99), MaxNs: h.max, Counts: [][2]int64{}}
	for i, c := range h.counts {
		if c != 0 {
			j.Counts = append(j.Counts, [2]int64{int64(i), c})
		}
	}
	return json.Marshal(j)
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var j histogramJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return err
	}
	*h = Histogram{max: j.MaxNs}
	for _, c := range j.Counts {
		if c[0] < 0 || c[0] >= bucketsInAll || c[1] < 0 {
			return fmt.Errorf("schedule: a histogram has no bucket %d with %d", c[0], c[1])
		}
		h.counts[c[0]] += c[1]
	}
	return nil
}
