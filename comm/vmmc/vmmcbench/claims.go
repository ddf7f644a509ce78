package vmmcbench

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pinwheel/internal/measure"
)

// Claims judges results of Run. Those of RDMA are there if that was measured, or failed.
func Claims(all []Result) []measure.Claim {
	find := func(kind, by, over string, bytes int) Result {
		at := slices.IndexFunc(all, func(r Result) bool {
			return r.Kind == kind && r.By == by && r.Over == over && r.Bytes == bytes
		})
		if at < 0 {
			return Result{Failed: measure.NotMeasured}
		}
		return all[at]
	}
	ns := func(r Result) float64 { return r.NS }
	cpu := func(r Result) float64 { return r.CPU }
	// ratio sets how many times as much a is as b.
	ratio := func(c measure.Claim, of func(Result) float64, a, b Result) measure.Claim {
		switch c.Missing = cmp.Or(a.Failed, b.Failed); {
		case c.Missing != "":
		case of(b) == 0:
			c.Missing = measure.NotMeasured
		default:
			c.Times = of(a) / of(b)
		}
		return c
	}
	claims := []measure.Claim{
		ratio(measure.Claim{What: "latency of automatic update below TCP's", Relation: measure.AtLeast, Bound: 3}, ns,
			find(Latency, socket, tcp, 8), find(Latency, automatic, shared, 8)),
		ratio(measure.Claim{What: "bandwidth of 4 KiB by deliberate update above a Unix socket's", Relation: measure.AtLeast, Bound: 1.5}, ns,
			find(Bandwidth, socket, unixSocket, 4<<10), find(Bandwidth, deliberate, shared, 4<<10)),
		ratio(measure.Claim{What: "processor time of a word by deliberate update below a Unix socket's", Relation: measure.AtLeast, Bound: 4}, cpu,
			find(Bandwidth, socket, unixSocket, 8), find(Bandwidth, deliberate, shared, 8)),
		ratio(measure.Claim{What: "processor time of a null call below that of net/rpc over TCP", Relation: measure.AtLeast, Bound: 4}, cpu,
			find(Call, theirs, tcp, 0), find(Call, ourCalls, shared, 0)),
		ratio(measure.Claim{What: "pages of 1 MiB by vmmc/stream as fast as by TCP", Relation: measure.AtLeast, Bound: 1}, ns,
			find(HTTP, socket, tcp, pageBytes), find(HTTP, streams, shared, pageBytes)),
	}
	if r := find(Latency, perftest, overRDMA, 8); r.Failed != measure.NotMeasured {
		claims = append(claims,
			ratio(measure.Claim{What: "latency of a word over RDMA, of ib_write_lat's", Relation: measure.AtMost, Bound: 1.3}, ns, find(Latency, deliberate, overRDMA, 8), r),
			ratio(measure.Claim{What: "bandwidth of 1 MiB over RDMA, of ib_write_bw's", Relation: measure.AtLeast, Bound: 0.9}, ns,
				find(Bandwidth, perftest, overRDMA, 1<<20), find(Bandwidth, deliberate, overRDMA, 1<<20)))
	}
	if r := find(Bandwidth, ucxPut, overRDMA, 1<<20); r.Failed != measure.NotMeasured {
		claims = append(claims, ratio(measure.Claim{What: "bandwidth of 1 MiB over RDMA, of UCX's put", Relation: measure.AtLeast, Bound: 1}, ns,
			r, find(Bandwidth, deliberate, overRDMA, 1<<20)))
	}
	for _, r := range all {
		if r.Kind == Periodic && r.Lease != nil {
			what := fmt.Sprintf("share of the messages of every %v that find no lease", time.Duration(r.Lease.PeriodNS))
			claims = append(claims, measure.Claim{What: what, Relation: measure.AtMost, Bound: 0.05, Times: r.Lease.Late})
		}
	}
	return claims
}
