package vmmcbench

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Claim is what one way of communication is to gain over another, or may lose.
type Claim struct {
	What  string  `json:"what"`
	Least float64 `json:"least"`          // how many times
	Most  float64 `json:"most,omitempty"` // how many times; 0: there is only a Least
	Times float64 `json:"times"`          // as measured
	// Missing says that it was not, and why; empty if it was.
	Missing string `json:"missing,omitempty"`
}

// Holds tells whether the claim was measured, and does.
func (c *Claim) Holds() bool {
	return c.Missing == "" && c.Times >= c.Least && (c.Most == 0 || c.Times <= c.Most)
}

// Bound says what Times should be.
func (c *Claim) Bound() string {
	if c.Most > 0 {
		return fmt.Sprintf("at most %.3g", c.Most)
	}
	return fmt.Sprintf("at least %.3g", c.Least)
}

// Claims judges results of Run. Those of RDMA are there if that was measured, or failed.
func Claims(all []Result) []Claim {
	find := func(kind, by, over string, bytes int) Result {
		at := slices.IndexFunc(all, func(r Result) bool {
			return r.Kind == kind && r.By == by && r.Over == over && r.Bytes == bytes
		})
		if at < 0 {
			return Result{Failed: notMeasured}
		}
		return all[at]
	}
	ns := func(r Result) float64 { return r.NS }
	cpu := func(r Result) float64 { return r.CPU }
	// ratio sets how many times as much a is as b.
	ratio := func(c Claim, of func(Result) float64, a, b Result) Claim {
		switch c.Missing = cmp.Or(a.Failed, b.Failed); {
		case c.Missing != "":
		case of(b) == 0:
			c.Missing = notMeasured
		default:
			c.Times = of(a) / of(b)
		}
		return c
	}
	claims := []Claim{
		ratio(Claim{What: "latency of automatic update below TCP's", Least: 3}, ns,
			find(Latency, socket, tcp, 8), find(Latency, automatic, shared, 8)),
		ratio(Claim{What: "bandwidth of 4 KiB by deliberate update above a Unix socket's", Least: 1.5}, ns,
			find(Bandwidth, socket, unixSocket, 4<<10), find(Bandwidth, deliberate, shared, 4<<10)),
		ratio(Claim{What: "processor time of a word by deliberate update below a Unix socket's", Least: 4}, cpu,
			find(Bandwidth, socket, unixSocket, 8), find(Bandwidth, deliberate, shared, 8)),
		ratio(Claim{What: "processor time of a null call below that of net/rpc over TCP", Least: 4}, cpu,
			find(Call, theirs, tcp, 0), find(Call, ourCalls, shared, 0)),
		ratio(Claim{What: "pages of 1 MiB by vmmc/stream as fast as by TCP", Least: 1}, ns,
			find(HTTP, socket, tcp, pageBytes), find(HTTP, streams, shared, pageBytes)),
	}
	if r := find(Latency, perftest, overRDMA, 8); r.Failed != notMeasured {
		claims = append(claims,
			ratio(Claim{What: "latency of a word over RDMA, of ib_write_lat's", Most: 1.3}, ns, find(Latency, deliberate, overRDMA, 8), r),
			ratio(Claim{What: "bandwidth of 1 MiB over RDMA, of ib_write_bw's", Least: 0.9}, ns,
				find(Bandwidth, perftest, overRDMA, 1<<20), find(Bandwidth, deliberate, overRDMA, 1<<20)))
	}
	if r := find(Bandwidth, ucxPut, overRDMA, 1<<20); r.Failed != notMeasured {
		claims = append(claims, ratio(Claim{What: "bandwidth of 1 MiB over RDMA, of UCX's put", Least: 1}, ns,
			r, find(Bandwidth, deliberate, overRDMA, 1<<20)))
	}
	for _, r := range all {
		if r.Kind == Periodic && r.Lease != nil {
			what := fmt.Sprintf("share of the messages of every %v that find no lease", time.Duration(r.Lease.PeriodNS))
			claims = append(claims, Claim{What: what, Most: 0.05, Times: r.Lease.Late})
		}
	}
	return claims
}

const notMeasured = "not measured"
