package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"pinwheel/comm/files"
)

// serverLabels tell the servers of files apart.
var serverLabels = []string{"dir", "pid", "server"}

// serverMetric is one metric of a server.
type serverMetric struct {
	name, help string
	kind       prometheus.ValueType
	value      func(s *files.Stats) int64
}

// ofServer are the metrics of a server.
var ofServer = []serverMetric{
	{"files_clients", "Clients that are connected to a server of files.", gauge,
		func(s *files.Stats) int64 { return int64(s.Clients) }},
	{"files_connections_total", "Clients that have connected.", counter,
		func(s *files.Stats) int64 { return s.ClientsEver }},
	{"files_open", "Files, directories, windows, uploads and data connections that clients have open.", gauge,
		func(s *files.Stats) int64 { return int64(s.OpenFiles) }},
	{"files_requests_total", "Requests of clients.", counter,
		func(s *files.Stats) int64 { return s.Requests }},
	{"files_request_errors_total", "Requests that failed.", counter,
		func(s *files.Stats) int64 { return s.Errors }},
	{"files_changed_total", "Requests that failed because the file had changed.", counter,
		func(s *files.Stats) int64 { return s.Changed }},
	{"files_sent_bytes_total", "Bytes of files that were sent to clients.", counter,
		func(s *files.Stats) int64 { return s.BytesSent }},
	{"files_sent_rdma_bytes_total", "Of those, by RDMA.", counter,
		func(s *files.Stats) int64 { return s.BytesRDMA }},
	{"files_sent_shared_bytes_total", "Of those, on this machine: through shared memory, or by a descriptor of the file.", counter,
		func(s *files.Stats) int64 { return s.BytesShared }},
	{"files_sent_tls_bytes_total", "Of those, through TLS connections.", counter,
		func(s *files.Stats) int64 { return s.BytesTLS }},
	{"files_sent_sendfile_bytes_total", "Of those, by sendfile(2), without encryption.", counter,
		func(s *files.Stats) int64 { return s.BytesSendfile }},
	{"files_sent_inline_bytes_total", "Of those, of small files, inside of answers.", counter,
		func(s *files.Stats) int64 { return s.BytesInline }},
	{"files_copied_bytes_total", "Bytes that were copied to be sent, as they were not registered in place.", counter,
		func(s *files.Stats) int64 { return s.BytesCopied }},
	{"files_received_bytes_total", "Bytes of files that came from clients.", counter,
		func(s *files.Stats) int64 { return s.BytesReceived }},
	{"files_registrations_total", "Registrations that transfers waited for.", counter,
		func(s *files.Stats) int64 { return s.Registrations }},
	{"files_hits_total", "Chunks of files that were found registered.", counter,
		func(s *files.Stats) int64 { return s.Hits }},
	{"files_refused_registrations_total", "Registrations for which there was no room.", counter,
		func(s *files.Stats) int64 { return s.Refused }},
	{"files_waits_total", "Transfers that waited for their turn.", counter,
		func(s *files.Stats) int64 { return s.Waits }},
	{"files_mappings", "Files that are mapped.", gauge,
		func(s *files.Stats) int64 { return int64(s.Mappings) }},
	{"files_mapping_hits_total", "Transfers of files that were found mapped.", counter,
		func(s *files.Stats) int64 { return s.MappingHits }},
	{"files_pinned_bytes", "Memory of files that is registered.", gauge,
		func(s *files.Stats) int64 { return s.PinnedBytes }},
	{"files_peak_pinned_bytes", "The most that files_pinned_bytes has been.", gauge,
		func(s *files.Stats) int64 { return s.PeakBytes }},
	{"files_budget_bytes", "What a server may have registered for all clients.", gauge,
		func(s *files.Stats) int64 { return s.BudgetBytes }},
}

// collectServer gives the metrics of a server. One that does not answer has none.
func (c *collector) collectServer(to chan<- prometheus.Metric, s *files.ServerInfo) {
	if s.Error != "" {
		return
	}
	labels := []string{s.Dir, strconv.Itoa(s.PID), strconv.Itoa(s.Server)}
	for i, m := range ofServer {
		to <- prometheus.MustNewConstMetric(c.server[i], m.kind, float64(m.value(&s.Stats)), labels...)
	}
}
