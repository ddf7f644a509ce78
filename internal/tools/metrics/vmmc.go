package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"pinwheel/comm/vmmc/broker"
)

// processLabels tell the processes apart that have names at the broker of a node.
var processLabels = []string{"process", "pid", "uid"}

// processMetric is one metric of a process.
type processMetric struct {
	name, help string
	kind       prometheus.ValueType
	value      func(s *broker.Sum, t *broker.Totals) float64
}

// ofProcess are the metrics of a process. There are none of single exports: those may be thousands.
var ofProcess = []processMetric{
	{"vmmc_exports", "Exports of a process with a name at the broker.", gauge,
		func(s *broker.Sum, _ *broker.Totals) float64 { return float64(s.Exports) }},
	{"vmmc_exported_bytes", "Size of all its exports.", gauge,
		func(s *broker.Sum, _ *broker.Totals) float64 { return float64(s.ExportedBytes) }},
	{"vmmc_importers", "Imports that others have of its exports.", gauge,
		func(s *broker.Sum, _ *broker.Totals) float64 { return float64(s.Importers) }},
	{"vmmc_waiting_imports", "Imports of others that wait for an export of it.", gauge,
		func(s *broker.Sum, _ *broker.Totals) float64 { return float64(s.Waiting) }},
	{"vmmc_pinned_bytes", "Exports that are registered for importers over RDMA, counted for each importer.", gauge,
		func(s *broker.Sum, _ *broker.Totals) float64 { return float64(s.PinnedBytes) }},
	{"vmmc_imports", "Imports that the process has.", gauge,
		func(s *broker.Sum, _ *broker.Totals) float64 { return float64(s.Imports) }},
	{"vmmc_queued", "Notifications that the process has not taken, and those of its own that wait for exporters.", gauge,
		func(s *broker.Sum, _ *broker.Totals) float64 { return float64(s.Queued) }},
	{"vmmc_received_bytes_total", "Bytes that came into its exports through connections.", counter,
		func(_ *broker.Sum, t *broker.Totals) float64 { return float64(t.ReceivedBytes) }},
	{"vmmc_notifications_total", "Notifications that came to its exports.", counter,
		func(_ *broker.Sum, t *broker.Totals) float64 { return float64(t.Notifications) }},
	{"vmmc_sends_total", "Messages that the process sent. A store into shared memory does not count.", counter,
		func(_ *broker.Sum, t *broker.Totals) float64 { return float64(t.Sends) }},
	{"vmmc_sent_bytes_total", "Bytes of these messages.", counter,
		func(_ *broker.Sum, t *broker.Totals) float64 { return float64(t.SentBytes) }},
	{"vmmc_send_errors_total", "Messages of the process that failed.", counter,
		func(_ *broker.Sum, t *broker.Totals) float64 { return float64(t.Errors) }},
	{"vmmc_refused_imports_total", "Imports that the process denied.", counter,
		func(_ *broker.Sum, t *broker.Totals) float64 { return float64(t.Refused) }},
	{"vmmc_violations_total", "Connections that ended because the peer broke the protocol.", counter,
		func(_ *broker.Sum, t *broker.Totals) float64 { return float64(t.Violations) }},
}

// collectProcess gives the metrics of a process. One that does not answer has none.
func (c *collector) collectProcess(to chan<- prometheus.Metric, p *broker.Process) {
	if p.Error != "" {
		return
	}
	labels := []string{p.Name, strconv.Itoa(p.PID), strconv.FormatUint(uint64(p.UID), 10)}
	s := p.Sum()
	for i, m := range ofProcess {
		to <- prometheus.MustNewConstMetric(c.process[i], m.kind, m.value(&s, &p.Total), labels...)
	}
}
