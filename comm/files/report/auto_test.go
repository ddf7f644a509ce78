package report

import (
	"testing"

	"pinwheel/comm/files/pipe"
	"pinwheel/internal/testwait"
)

// The strategy auto chooses by the size of the file alone: between the sizes of the figures, too, it must be as good as
// the best of the four.
func TestAutoIsNearTheBestAtEachSize(t *testing.T) {
	testwait.Bound(t)
	var ns []int64
	for n := int64(1); n < 1<<30; n += n/8 + 1 {
		ns = append(ns, n)
	}
	at := pipe.Auto.CopyBelow
	for _, n := range append(ns, at-1, at, at+1, 1<<30) {
		best := 0.0
		for _, s := range []serve{static, dynamic, pipelined, by(pipe.Sendfile, false)} {
			best = max(best, throughput(s, n))
		}
		for _, hot := range []bool{false, true} {
			if got := throughput(by(pipe.Auto, hot), n); got < 0.95*best {
				t.Errorf("%d bytes, hot %v: %.1f MiB/s of %.1f", n, hot, got, best)
			}
		}
	}
}
