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

// Stats are what a process exports and imports. Counters count from the start of their export, their import or
// the process.
type Stats struct {
	Exports []ExportStats `json:"exports"` // sorted by ID
	Imports []ImportStats `json:"imports"`
	// Waiting is how many imports of others wait for exports of this process, Refused how many it denied.
	Waiting int    `json:"waiting"`
	Refused uint64 `json:"refused"`
	// Violations is how many connections ended because the peer broke the protocol.
	Violations uint64 `json:"violations"`
}

// ExportStats is an export.
type ExportStats struct {
	ID        uint32 `json:"export"`
	Bytes     uint64 `json:"bytes"`
	Importers int    `json:"importers"`
	Sharing   int    `json:"sharing"` // those of them that share its memory
	// ReceivedBytes came through connections. Bytes through shared memory are counted by their importer only.
	ReceivedBytes uint64 `json:"received_bytes"`
	Notifications uint64 `json:"notifications"`
	Queued        int    `json:"queued"` // notifications that nobody has taken
}

// ImportStats is an import.
type ImportStats struct {
	Exporter  string `json:"exporter"` // its address
	ID        uint32 `json:"export"`
	Bytes     uint64 `json:"bytes"` // of the export
	Shared    bool   `json:"shared"`
	Sends     uint64 `json:"sends"` // messages. A store into shared memory is none
	SentBytes uint64 `json:"sent_bytes"`
	Queued    int    `json:"queued"` // notifications that wait for the exporter
	Errors    uint64 `json:"errors"` // messages that failed
}
