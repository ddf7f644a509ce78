package summary

import (
	"math/bits"
	"slices"
)

// distribution is a histogram of non-negative values whose buckets are
// 0.1 % wide. Only buckets in use take memory.
type distribution struct {
	n       uint64
	buckets map[uint32]uint64
}

// mantissaBits is the precision: a value keeps this many bits after its first.
const mantissaBits = 10

func bucketOf(v uint64) uint32 {
	shift := max(bits.Len64(v)-1-mantissaBits, 0)
	return uint32(shift)<<(mantissaBits+1) | uint32(v>>shift)
}

// valueOf returns the middle of a bucket.
func valueOf(b uint32) uint64 {
	shift := b >> (mantissaBits + 1)
	return uint64(b&(1<<(mantissaBits+1)-1))<<shift + 1<<shift>>1
}

func (d *distribution) add(v int64) {
	if d.buckets == nil {
		d.buckets = map[uint32]uint64{}
	}
	d.n++
	d.buckets[bucketOf(uint64(max(v, 0)))]++
}

// quantiles returns the values below which the given ascending shares lie;
// zeros if the distribution is empty.
func (d *distribution) quantiles(shares ...float64) []int64 {
	keys := make([]uint32, 0, len(d.buckets))
	for b := range d.buckets {
		keys = append(keys, b)
	}
	slices.Sort(keys) // bucket numbers are in order of value
	out := make([]int64, len(shares))
	var below uint64
	i := 0
	for _, b := range keys {
		below += d.buckets[b]
		for i < len(shares) && float64(below) >= shares[i]*float64(d.n) {
			out[i] = int64(valueOf(b))
			i++
		}
	}
	return out
}

// Period describes intervals between uses.
type Period struct {
	MedianNs int64 `json:"median_ns"`
	// Jitter is the distance between the 10 % and the 90 % quantile, relative to the median.
	Jitter float64 `json:"jitter"`
	N      uint64  `json:"n"` // intervals measured
}

func (d *distribution) period() Period {
	q := d.quantiles(0.1, 0.5, 0.9)
	p := Period{MedianNs: q[1], N: d.n}
	if q[1] > 0 {
		p.Jitter = float64(q[2]-q[0]) / float64(q[1])
	}
	return p
}
