package predictor

// Trained are what a Pinwheel learned in one run, as plain data. Another run of the same job can
// begin with them: Options.Trained. All of it holds between runs: no address and no RegionID is in it.
type Trained struct {
	Buffers []Buffer
	Entries []TrainedEntry
}

// Buffer is one by its part in the program: the call site that used it first, and how many
// buffers were first used there before it.
type Buffer struct {
	Site    uint64 // hash of the operation and the frames; Options.Frame makes those the same in every run
	Ordinal uint32
	Uses    uint64 // in the whole run
	Bytes   uint64 // of its region
}

// TrainedEntry is what followed one context: how long it took until the same buffer was needed again, and which
// event came before that need.
type TrainedEntry struct {
	Context uint64  // hash; the buffer's identity is part of it
	GapsNs  []int64 // the last ones, from the end of the use to the next need; oldest first

	// Steps is how many events after the use the trigger came: the last event that left enough time to
	// register. 0 if there was none.
	Steps      uint32
	Trigger    uint64  // hash of its operation and call site
	Confidence uint32  // how often in a row it was this trigger
	AfterNs    []int64 // from the trigger to the need; oldest first
}
