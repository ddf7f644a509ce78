package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/files"
)

// Options say how something is copied. The zero value copies one file.
type Options struct {
	Recursive bool      // a directory, with all that is in it
	Resume    bool      // go on where an earlier copy ended
	Verify    files.Sum // empty: files.CRC32C
	// Compare looks at the checksums of files that are there, too. Without it, those of a tree, and of a copy that resumes,
	// are left alone if they have the size and the modification time of their source.
	Compare bool
	Strict  bool // a file that grows while it is copied is one that changes, and not copied as of its start
	Parents bool // make directories that are missing, in which the destination is to be
	// Meter, if not nil, is moved on while the copy goes on.
	Meter *Meter
	// Failed, if not nil, gets the error of each file of a tree that could not be copied, while others are. It may be
	// called from several goroutines.
	Failed func(error)
	// Warn, if not nil, gets a line for each file that grew while it was copied. It may be called from several
	// goroutines.
	Warn func(string)

	// Retry is how long a copy goes on that has lost its server, or RDMA that one of the ends insists on: it connects
	// again, and resumes. The time begins anew whenever bytes have moved. 0: the copy ends with the connection. More
	// implies Resume.
	Retry time.Duration
	// Redial connects to the server again, and waits for it until ctx ends. Retry needs it. One goroutine calls it, when
	// nothing uses the client before any more. The client that it returns stays the caller's.
	Redial func(ctx context.Context) (*files.Client, error)

	made *madeDirectories
}

// EnsureDefaults fills in what is zero. It fails if the options make no sense.
func (o *Options) EnsureDefaults() error {
	if o.Verify == "" {
		o.Verify = files.CRC32C
	}
	if _, err := o.Verify.New(); err != nil {
		return err
	}
	if o.Retry < 0 || o.Retry > 0 && o.Redial == nil {
		return fmt.Errorf("to retry for %v, without a way to connect", o.Retry)
	}
	o.Resume = o.Resume || o.Retry > 0
	if o.Resume && o.Verify == files.NoSum {
		return errors.New("to resume needs a checksum: nobody else knows what a crash has left of a file")
	}
	if o.Meter == nil {
		o.Meter = new(Meter)
	}
	if o.Failed == nil {
		o.Failed = func(error) {}
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	return nil
}

// Meter counts what a copy has done so far. TotalBytes grows as directories are read.
type Meter struct {
	Files, Bytes, TotalBytes atomic.Int64
}

// Result says what a copy has done.
type Result struct {
	Files        int64 `json:"files"`         // that were copied whole
	Directories  int64 `json:"directories"`   // that were made, or were there
	Bytes        int64 `json:"bytes"`         // of files that were copied whole
	ResumedBytes int64 `json:"resumed_bytes"` // of those, what an earlier copy had left
	Unchanged    int64 `json:"unchanged"`     // files that were there already
	Skipped      int64 `json:"skipped"`       // symbolic links, devices and the like
	Retries      int64 `json:"retries"`       // because the source changed, or a checksum was wrong
	Grown        int64 `json:"grown"`         // files that grew while they were copied
	Failed       int64 `json:"failed"`        // files of a tree that could not be copied
	Reconnects   int64 `json:"reconnects"`    // after the server was lost
}

// counts are a Result that many goroutines count in.
type counts struct {
	files, directories, bytes, resumed, unchanged, skipped, retries, grown, failed atomic.Int64
}

func (c *counts) result() Result {
	return Result{
		Files: c.files.Load(), Directories: c.directories.Load(), Bytes: c.bytes.Load(), ResumedBytes: c.resumed.Load(),
		Unchanged: c.unchanged.Load(), Skipped: c.skipped.Load(), Retries: c.retries.Load(), Grown: c.grown.Load(),
		Failed: c.failed.Load(),
	}
}

// attemptsOfSource is how often a source is copied that changes meanwhile.
const attemptsOfSource = 3

// retry copies a source until it does not change meanwhile.
func (c *counts) retry(name string, copyOnce func() error) error {
	var err error
	for range attemptsOfSource {
		if err = copyOnce(); !again(err) {
			return err
		}
		c.retries.Inc()
	}
	if errors.Is(err, files.ErrChecksum) {
		return fmt.Errorf("%s: %w, %d times", name, err, attemptsOfSource)
	}
	return fmt.Errorf("%s: changed each time it was copied, %d times: try again when nobody writes to it",
		name, attemptsOfSource)
}

// again tells whether another attempt may go better, by the same connection.
func again(err error) bool {
	return !Lost(err) && (errors.Is(err, files.ErrChanged) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, files.ErrChecksum))
}

// fatal tells whether the other files of a tree would fail in the same way.
func fatal(err error) bool {
	for _, e := range []error{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, files.ErrPeerGone, files.ErrNoRDMA, files.ErrClosed,
		files.ErrProtocol, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// same tells whether two descriptions are of the same content, as far as size and time can tell.
func same(a, b fs.FileInfo) bool { return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) }
