package vmmcbench

import "slices"

// Claim is what one way of communication is to gain over another.
type Claim struct {
	What  string  `json:"what"`
	Least float64 `json:"least"` // how many times
	Times float64 `json:"times"` // as measured
}

// Holds tells whether the claim does.
func (c *Claim) Holds() bool { return c.Times >= c.Least }

// Claims judges results of Run.
func Claims(all []Result) []Claim {
	find := func(kind, by, over string, bytes int) Result {
		at := slices.IndexFunc(all, func(r Result) bool {
			return r.Kind == kind && r.By == by && r.Over == over && r.Bytes == bytes
		})
		if at < 0 {
			return Result{}
		}
		return all[at]
	}
	ns := func(r Result) float64 { return r.NS }
	cpu := func(r Result) float64 { return r.CPU }
	claim := func(what string, least float64, of func(Result) float64, other, ours Result) Claim {
		c := Claim{What: what, Least: least}
		if of(ours) > 0 {
			c.Times = of(other) / of(ours)
		}
		return c
	}
	return []Claim{
		claim("latency of automatic update below TCP's", 3, ns,
			find(Latency, socket, tcp, 8), find(Latency, automatic, shared, 8)),
		claim("bandwidth of 4 KiB by deliberate update above a Unix socket's", 1.5, ns,
			find(Bandwidth, socket, unixSocket, 4<<10), find(Bandwidth, deliberate, shared, 4<<10)),
		claim("processor time of a word by deliberate update below a Unix socket's", 4, cpu,
			find(Bandwidth, socket, unixSocket, 8), find(Bandwidth, deliberate, shared, 8)),
		claim("processor time of a null call below that of net/rpc over TCP", 4, cpu,
			find(Call, theirs, tcp, 0), find(Call, ourCalls, shared, 0)),
		claim("pages of 1 MiB by vmmc/stream as fast as by TCP", 1, ns,
			find(HTTP, socket, tcp, pageBytes), find(HTTP, streams, shared, pageBytes)),
	}
}
