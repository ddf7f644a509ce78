// Package monitortest makes Looks at nodes that don't exist, for the tests of what shows them.
package monitortest

import (
	"math"
	"time"

	"pinwheel/comm/files"
	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/report"
	"pinwheel/internal/tools/monitor"
)

// Start is when all ranks have started.
var Start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Node returns a look at a job of so many ranks, some seconds after its start. The same arguments give the same look.
// Ranks differ: the pinned bytes of each go up and down with a period of its own; the helpers of odd ranks share a
// core, and each eighth one is parked. There is a budget if it is positive.
func Node(ranks int, second float64, budget int64) monitor.Look {
	j := monitor.Job{ID: "slurm-4711"}
	if budget > 0 {
		j.BudgetBytes = &budget
	}
	for n := range ranks {
		r := rank(n, second)
		if budget > 0 {
			share := budget / int64(ranks)
			r.ShareBytes = &share
		}
		j.PinnedBytes += r.PinnedBytes
		j.Ranks = append(j.Ranks, r)
	}
	return monitor.Look{
		Time: Start.Add(time.Duration(second * float64(time.Second))), Host: "node17", Jobs: []monitor.Job{j},
	}
}

// Processes returns two that have names at the broker, of which the second is stopped.
func Processes() []broker.Process {
	p := broker.Process{Name: "weather", PID: 30_000, UID: 1000}
	p.Exports = []broker.ExportStats{{ID: 1, Bytes: 1 << 20, Importers: 2},
		{ID: 2, Bytes: 1 << 10, Importers: 1, Queued: 3}}
	p.Imports = []broker.ImportStats{{Exporter: "node:model", ID: 7, Bytes: 1 << 20, Queued: 1}}
	p.Waiting, p.PinnedBytes = 1, 1<<20
	p.Total.Received = broker.Received{ReceivedBytes: 5 << 20, Notifications: 70}
	p.Total.Sent = broker.Sent{Sends: 1000, SentBytes: 3 << 30, Errors: 2}
	p.Total.Refused, p.Total.Violations = 4, 5
	return []broker.Process{p, {Name: "stopped", PID: 30_001, UID: 1000, Error: "it does not answer"}}
}

// Servers returns two that serve files, of which the second is stopped.
func Servers() []files.ServerInfo {
	s := files.ServerInfo{PID: 40_000, Server: 1, Dir: "/srv/models", Addresses: []string{"tcp:node17:7400"}}
	s.Stats = files.Stats{
		Clients: 3, ClientsEver: 20, OpenFiles: 7, Requests: 5000, Errors: 4, Changed: 1,
		BytesSent: 15 << 30, BytesReceived: 1 << 20, BytesRDMA: 8 << 30, BytesShared: 4 << 30, BytesTLS: 2 << 30,
		BytesSendfile: 1 << 30, BytesInline: 5 << 10, BytesCopied: 2 << 30,
		RegistrarStats: files.RegistrarStats{
			Registrations: 900, Hits: 7000, Refused: 2, Waits: 30, Mappings: 6, MappingHits: 40,
			PinnedBytes: 6 << 20, PeakBytes: 32 << 20, BudgetBytes: 64 << 20,
		},
	}
	return []files.ServerInfo{s, {PID: 40_001, Error: "it does not answer"}}
}

func rank(n int, second float64) monitor.Rank {
	const mib = 1 << 20
	wave := (1 - math.Cos(2*math.Pi*second/float64(10+5*n))) / 2
	total := func(aSecond float64) int64 { return int64(math.Round(aSecond * second)) }
	r := monitor.Rank{
		Rank: n, PID: 20_000 + n, Manager: 1, Program: "ft.B.x",
		StartSeconds: float64(Start.Unix()), RunSeconds: second, AgeSeconds: 0.25,
		PinnedBytes: int64(wave * float64(100+10*n) * mib), PeakPinnedBytes: int64(100+10*n) * mib,
		Hits: total(1000 * float64(1+n)), FirstRegs: 12, LateUses: total(0.5 * float64(n)),
		HelperRegs: total(20), HelperDeregs: total(21), StallNs: total(1e6 * float64(n)),
		Accuracy: report.Accuracy{Predictions: total(40)},
		Cost:     report.Cost{Share: .005, AgainNs: total(5e5 * float64(n)), WaitNs: total(1e5 * float64(n)), PriceNs: 4500},
		Helper: monitor.Helper{
			Running: true, CPU: n, Shared: n%2 == 1, Parked: n%8 == 7,
			CPUNs: total(1.25e7), RegisterNs: total(1e7), Wakeups: total(50),
		},
	}
	r.Within05, r.Within5 = total(30), total(38)
	if r.Predictions > 0 {
		r.Err05, r.Err5 = float64(r.Within05)/float64(r.Predictions), float64(r.Within5)/float64(r.Predictions)
	}
	if r.Helper.Shared {
		limit := 0.02
		r.Helper.ShareLimit = &limit
	}
	return r
}
