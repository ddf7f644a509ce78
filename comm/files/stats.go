package files

// Stats count what a Server has done, and say what it holds now.
type Stats struct {
	Clients     int   `json:"clients"`      // connected now
	ClientsEver int64 `json:"clients_ever"` // since the beginning
	OpenFiles   int   `json:"open_files"`   // now, with directories, windows, uploads and data connections
	Requests    int64 `json:"requests"`
	Errors      int64 `json:"errors"` // requests that failed, and ErrChanged
	Changed     int64 `json:"changed"`

	BytesSent     int64 `json:"bytes_sent"` // of files, to clients
	BytesReceived int64 `json:"bytes_received"`
	BytesRDMA     int64 `json:"bytes_rdma"`   // of those sent
	BytesShared   int64 `json:"bytes_shared"` // through shared memory, and by descriptors as far as clients say so
	BytesTLS      int64 `json:"bytes_tls"`
	BytesSendfile int64 `json:"bytes_sendfile"`
	BytesInline   int64 `json:"bytes_inline"` // inside of answers
	BytesCopied   int64 `json:"bytes_copied"` // through a ring

	RegistrarStats
}

// RegistrarStats count what a Registrar has done, and say what it holds now.
type RegistrarStats struct {
	Registrations int64 `json:"registrations"` // on the path of transfers; those of the helper thread are not
	Hits          int64 `json:"hits"`          // chunks of files, and slots of rings, that were registered already
	Refused       int64 `json:"refused"`       // registrations for which there was no room
	Waits         int64 `json:"waits"`         // transfers that waited for their turn
	Mappings      int   `json:"mappings"`      // files that are mapped now
	MappingHits   int64 `json:"mapping_hits"`  // transfers of files that were mapped already
	PinnedBytes   int64 `json:"pinned_bytes"`  // registered now
	PeakBytes     int64 `json:"peak_bytes"`    // most that was registered at a time
	BudgetBytes   int64 `json:"budget_bytes"`
}

// ClientStats count what a Client has moved.
type ClientStats struct {
	Requests     int64
	BytesRead    int64 // of files
	BytesWritten int64
}
