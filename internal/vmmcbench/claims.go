package vmmcbench

import (
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
}

// Holds tells whether the claim does.
func (c *Claim) Holds() bool { return c.Times >= c.Least && (c.Most == 0 || c.Times <= c.Most) }

// Bound says what Times should be.
func (c *Claim) Bound() string {
	if c.Most > 0 {
		return fmt.Sprintf("at most %.3g", c.Most)
	}
	return fmt.Sprintf("at least %.3g", c.Least)
}

// Claims judges results of Run. Those of RDMA are there if it was measured.
func Claims(all []Result) []Claim {
	find := func(kind, by, over string, bytes int) (r Result, measured bool) {
		at := slices.IndexFunc(all, func(r Result) bool {
			return r.Kind == kind && r.By == by && r.Over == over && r.Bytes == bytes
		})
		if at < 0 {
			return Result{}, false
		}
		return all[at], true
	}
	ns := func(r Result) float64 { return r.NS }
	cpu := func(r Result) float64 { return r.CPU }
	ratio := func(of func(Result) float64, kind string, bytes int, by, over, ourBy, ourOver string) float64 {
		other, _ := find(kind, by, over, bytes)
		ours, measured := find(kind, ourBy, ourOver, bytes)
		if !measured || of(ours) == 0 {
			return 0
		}
		return of(other) / of(ours)
	}
	claims := []Claim{
		{What: "latency of automatic update below TCP's", Least: 3,
			Times: ratio(ns, Latency, 8, socket, tcp, automatic, shared)},
		{What: "bandwidth of 4 KiB by deliberate update above a Unix socket's", Least: 1.5,
			Times: ratio(ns, Bandwidth, 4<<10, socket, unixSocket, deliberate, shared)},
		{What: "processor time of a word by deliberate update below a Unix socket's", Least: 4,
			Times: ratio(cpu, Bandwidth, 8, socket, unixSocket, deliberate, shared)},
		{What: "processor time of a null call below that of net/rpc over TCP", Least: 4,
			Times: ratio(cpu, Call, 0, theirs, tcp, ourCalls, shared)},
		{What: "pages of 1 MiB by vmmc/stream as fast as by TCP", Least: 1,
			Times: ratio(ns, HTTP, pageBytes, socket, tcp, streams, shared)},
	}
	if r, measured := find(Latency, perftest, overRDMA, 8); measured {
		ours, _ := find(Latency, deliberate, overRDMA, 8)
		claims = append(claims,
			Claim{What: "latency of a word over RDMA, of ib_write_lat's", Most: 1.3, Times: ours.NS / r.NS},
			Claim{What: "bandwidth of 1 MiB over RDMA, of ib_write_bw's", Least: 0.9,
				Times: ratio(ns, Bandwidth, 1<<20, perftest, overRDMA, deliberate, overRDMA)})
	}
	if _, measured := find(Bandwidth, ucxPut, overRDMA, 1<<20); measured {
		claims = append(claims, Claim{What: "bandwidth of 1 MiB over RDMA, of UCX's put", Least: 1,
			Times: ratio(ns, Bandwidth, 1<<20, ucxPut, overRDMA, deliberate, overRDMA)})
	}
	for _, r := range all {
		if r.Kind == Periodic {
			what := fmt.Sprintf("share of the messages of every %v that find no lease", time.Duration(r.Lease.PeriodNS))
			claims = append(claims, Claim{What: what, Most: 0.05, Times: r.Lease.Late})
		}
	}
	return claims
}
