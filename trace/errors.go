package trace

import (
	"errors"
	"fmt"
)

// Errors of opening and reading a trace; compare with errors.Is.
var (
	// ErrNotTrace means that the file does not begin as a .pwt file does.
	ErrNotTrace = errors.New("not a pinwheel trace (.pwt)")
	// ErrVersion means that a newer pinwheel has written the file.
	ErrVersion = errors.New("trace has a newer format version (upgrade pinwheel)")
	// ErrCorrupt means that a checksum or a value is wrong where the file is not merely cut off.
	ErrCorrupt = errors.New("trace is damaged (copy or record it again)")
	// ErrNoRank means that the file holds no records of this rank.
	ErrNoRank = errors.New("rank is not in this trace")
)

// Errors of appending to a trace.
var (
	// ErrTime means that a call begins before the call before it ended, or ends before it begins.
	ErrTime = errors.New("time runs backwards")
	// ErrInvalid means that a field of a record has no meaning.
	ErrInvalid = errors.New("invalid record")
	// ErrLimit means that there are more call sites, communicators or ranks than the format takes.
	ErrLimit = errors.New("exceeds the limits of the trace format")
)

// TornError describes a trace whose end is missing. What is left of it can
// be read.
type TornError struct {
	Path      string
	Frames    int    // whole frames found
	Records   uint64 // records in them
	KeptBytes int64  // length of the readable part of the file
	LostBytes int64  // bytes after it that belong to no whole frame
}

func (e *TornError) Error() string {
	return fmt.Sprintf("%s: trace was cut off: read up to its last whole frame (%d records in %d frames), %d bytes "+
		"after it ignored",
		e.Path, e.Records, e.Frames, e.LostBytes)
}

func corruptf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
