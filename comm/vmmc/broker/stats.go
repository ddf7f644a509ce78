package broker

// Process is an exporter, as a list shows it.
type Process struct {
	Name string `json:"name"` // that it registered
	PID  int    `json:"pid"`
	UID  uint32 `json:"uid"`
	// Error says why the process did not tell what follows. It may be stopped.
	Error string `json:"error,omitempty"`
	Stats
}

// Stats are what a process exports and imports.
type Stats struct {
	Exports []ExportStats `json:"exports"` // sorted by ID
	Imports []ImportStats `json:"imports"` // sorted by exporter and ID
	Waiting int           `json:"waiting"` // imports of others, for exports that are not there
	Total   Totals        `json:"total"`
	// PinnedBytes are those of exports that are registered for importers over RDMA.
	PinnedBytes uint64 `json:"pinned_bytes"`
}

// Totals count since the start of the process, what has ended included.
type Totals struct {
	Received
	Sent
	Refused uint64 `json:"refused"` // imports that were denied
	// Violations is how many connections ended because the peer broke the protocol.
	Violations uint64 `json:"violations"`
}

// Received counts what came into exports.
type Received struct {
	// ReceivedBytes came through connections. Bytes through shared memory are counted by their importer only.
	ReceivedBytes uint64 `json:"received_bytes"`
	Notifications uint64 `json:"notifications"`
}

// Add adds other counts.
func (r *Received) Add(o Received) {
	r.ReceivedBytes += o.ReceivedBytes
	r.Notifications += o.Notifications
}

// Sent counts what went to imports.
type Sent struct {
	Sends     uint64 `json:"sends"` // messages; a store into shared memory does not count
	SentBytes uint64 `json:"sent_bytes"`
	Errors    uint64 `json:"errors"` // messages that failed
}

// Add adds other counts.
func (s *Sent) Add(o Sent) {
	s.Sends += o.Sends
	s.SentBytes += o.SentBytes
	s.Errors += o.Errors
}

// ExportStats is an export.
type ExportStats struct {
	ID        uint32 `json:"export"`
	Bytes     uint64 `json:"bytes"`
	Importers int    `json:"importers"`
	Sharing   int    `json:"sharing"` // those of them that share its memory
	Received
	Queued int `json:"queued"` // notifications that nobody has taken
}

// ImportStats is an import.
type ImportStats struct {
	Exporter string `json:"exporter"` // its address
	ID       uint32 `json:"export"`
	Bytes    uint64 `json:"bytes"` // of the export
	Shared   bool   `json:"shared"`
	Sent
	Queued int `json:"queued"` // messages whose notifications wait for the exporter
}

// Sum is what a process has now, all exports and imports together.
type Sum struct {
	Exports       int
	ExportedBytes uint64
	Importers     int
	Waiting       int
	Imports       int
	PinnedBytes   uint64
	Queued        int // at exports and at imports
}

// Sum adds up.
func (s *Stats) Sum() Sum {
	sum := Sum{Exports: len(s.Exports), Waiting: s.Waiting, Imports: len(s.Imports), PinnedBytes: s.PinnedBytes}
	for i := range s.Exports {
		e := &s.Exports[i]
		sum.ExportedBytes += e.Bytes
		sum.Importers += e.Importers
		sum.Queued += e.Queued
	}
	for i := range s.Imports {
		sum.Queued += s.Imports[i].Queued
	}
	return sum
}
