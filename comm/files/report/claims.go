package report

import (
	"fmt"
	"math"

	"pinwheel/comm/files/pipe"
	"pinwheel/comm/files/pipe/virtual"
	"pinwheel/internal/measure"
)

// worst returns the least value of f over sizes from lo to hi, and where it is. There must be some: a claim about
// nothing would hold.
func worst(lo, hi int64, f func(n int64) float64) (value float64, at int64) {
	value = math.Inf(1)
	for _, n := range sizes() {
		if v := f(n); n >= lo && n <= hi && v < value {
			value, at = v, n
		}
	}
	if at == 0 {
		panic(fmt.Sprintf("report: no size from %d to %d is a number", lo, hi))
	}
	return value, at
}

func ratio(a, b serve) func(int64) float64 {
	return func(n int64) float64 { return throughput(a, n) / throughput(b, n) }
}

// Claims compares the simulation with what the paper shows, and with what the strategy auto promises.
func Claims() []measure.Claim {
	const whole = 64 * mib
	var claims []measure.Claim
	claim := func(what string, relation measure.Relation, value float64, at int64, want float64) {
		claims = append(claims, measure.Claim{
			What: what, Relation: relation, Bound: want, Times: value, Said: fmt.Sprintf("%.3f at %s", value, Size(at)),
		})
	}
	least := func(what string, value float64, at int64, want float64) {
		claim(what, measure.AtLeast, value, at, want)
	}
	over := func(lo, hi int64, what string, a, b serve, want float64) {
		v, at := worst(lo, hi, ratio(a, b))
		least(what, v, at, want)
	}
	over(0, 64*kib, "static to dynamic, up to 64 KiB", oneBuffer, dynamic, 1)
	over(mib, whole, "dynamic to static with one buffer, from 1 MiB", dynamic, oneBuffer, 1)
	over(mib, whole, "dynamic to static with a ring, from 1 MiB", dynamic, static, 1)

	user := ratio(mapped(256, 2, virtual.HotI07User), mapped(256, 1, virtual.HotI07User))(whole)
	kernel := ratio(mapped(256, 2, virtual.HotI07Kernel), mapped(256, 1, virtual.HotI07Kernel))(whole)
	least("pipelined, two pipes to one", user, whole, 1.2)
	gain := (kernel - 1) / (user - 1)
	claim("gain of the second pipe, sendfile to pipelined", measure.Below, gain, whole, 0.5)

	over(0, mib, "pipelined to dynamic, up to one chunk", pipelined, dynamic, 0.98)
	over(0, mib, "dynamic to pipelined, up to one chunk", dynamic, pipelined, 0.98)
	over(2*mib, whole, "pipelined to dynamic, beyond one chunk", pipelined, dynamic, 1.03)
	over(0, whole, "sendfile to pipelined, everywhere", sendfile, pipelined, 1)
	over(256*kib, whole, "sendfile to pipelined, from 256 KiB", sendfile, pipelined, 1.03)
	small := mapped(16, 4, virtual.HotI07Kernel)
	least("sendfile with 4 x 16 pages to the wire", ratio(small, wireOnly)(16*mib), 16*mib, 0.95)

	best := func(ways ...serve) serve {
		return func(n int64) virtual.Transfer {
			fastest := ways[0]
			for _, w := range ways[1:] {
				if throughput(w, n) > throughput(fastest, n) {
					fastest = w
				}
			}
			return fastest(n)
		}
	}
	ours := best(static, dynamic, pipelined, by(pipe.Sendfile, false))
	over(0, whole, "auto to the best of the four without the module, cold file", by(pipe.Auto, false), ours, 0.95)
	over(0, whole, "auto to the best of the four without the module, hot file", by(pipe.Auto, true), ours, 0.95)
	return claims
}
