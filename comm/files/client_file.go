package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"go.uber.org/atomic"

	"pinwheel/comm/files/internal/wire"
)

// File is a file of a server that is open for reading. All methods are safe for concurrent use.
type File struct {
	client *Client
	name   string
	handle uint64
	info   Info
	closed atomic.Bool
	grows  atomic.Bool // AllowGrowth
	own    ownFile
}

// Open opens a regular file for reading. It fails with EISDIR for a directory.
func (c *Client) Open(ctx context.Context, name string) (*File, error) {
	const op = "open"
	if err := valid(op, name); err != nil {
		return nil, err
	}
	var a wire.Opened
	if _, err := c.call(ctx, wire.ProcOpen, op, name, &wire.Name{Name: name}, &a); err != nil {
		return nil, err
	}
	info, err := infoOf(&a.Info)
	if err != nil {
		return nil, err
	}
	return &File{client: c, name: name, handle: a.Handle, info: info}, nil
}

// Info describes the file as it was opened.
func (f *File) Info() Info { return f.info }

// clamp returns how many of n bytes from off the file had when it was opened.
func (f *File) clamp(off, n int64) int64 { return max(min(n, f.info.size-off), 0) }

// usable fails if the file was closed, or the range is none.
func (f *File) usable(off, n int64) error {
	switch {
	case f.closed.Load():
		return &fs.PathError{Op: "read", Path: f.name, Err: ErrClosed}
	case off < 0 || n < 0:
		return &fs.PathError{Op: "read", Path: f.name, Err: syscall.EINVAL}
	}
	return nil
}

// ReadAt reads len(p) bytes from an offset. As with io.ReaderAt, it returns fewer only with an error, which is io.EOF
// at the end of the file. It fails with ErrChanged if the file is not the one that was opened.
func (f *File) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := f.usable(off, int64(len(p))); err != nil {
		return 0, err
	}
	into := into(p[:f.clamp(off, int64(len(p)))])
	n, err := f.copyRange(ctx, &into, off, int64(len(into)))
	if err == nil && n < int64(len(p)) {
		err = io.EOF
	}
	return int(n), err
}

// into is an io.Writer into memory that is long enough.
type into []byte

func (b *into) Write(p []byte) (int, error) {
	n := copy(*b, p)
	*b = (*b)[n:]
	return n, nil
}

// WriteFileRange implements FileRangeWriter.
func (b *into) WriteFileRange(f *os.File, off, n int64) (int64, error) {
	k, err := f.ReadAt((*b)[:n], off)
	*b = (*b)[k:]
	return int64(k), err
}

// ReadFrom reads straight into the memory.
func (b *into) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.ReadFull(r, *b)
	if *b = (*b)[n:]; err == io.ErrUnexpectedEOF || err == io.EOF {
		err = nil // as io.ReaderFrom has it
	}
	return int64(n), err
}

// CopyRange writes n bytes of the file from an offset to w, in order, while more are on their way. What w gets is valid
// until its Write returns. Where it lies in the window of the client, it was not copied yet. CopyRange returns how many
// bytes w has taken, all of which were in the file as it was opened if the error is nil. It fails with ErrChanged if
// the file is not that one any more, with io.ErrUnexpectedEOF if it had fewer bytes, and with the error of w.
func (f *File) CopyRange(ctx context.Context, w io.Writer, off, n int64) (int64, error) {
	if err := f.usable(off, n); err != nil {
		return 0, err
	}
	has := f.clamp(off, n)
	copied, err := f.copyRange(ctx, w, off, has)
	if err == nil && has < n {
		err = io.ErrUnexpectedEOF
	}
	return copied, err
}

// copyRange copies what the file has, by the best way.
func (f *File) copyRange(ctx context.Context, w io.Writer, off, n int64) (int64, error) {
	switch {
	case n == 0:
		return 0, nil
	case n <= SmallBytes:
		return f.copyInline(ctx, w, off, n)
	case f.client.Transport() == BySendfile:
		return f.copyStream(ctx, w, off, n)
	case n >= minRead:
		if own := f.descriptor(ctx); own != nil {
			return f.copyOwn(ctx, own, w, off, n)
		}
	}
	return f.copyWindow(ctx, w, off, n)
}

// copyInline copies what comes inside of an answer.
func (f *File) copyInline(ctx context.Context, w io.Writer, off, n int64) (int64, error) {
	var a wire.Moved
	q := wire.Read{Handle: f.handle, Off: off, Len: n}
	if _, err := f.client.call(ctx, wire.ProcRead, "read", f.name, &q, &a); err != nil {
		return 0, err
	}
	if int64(len(a.Content)) != n {
		return 0, fmt.Errorf("%w: %d bytes of %d", ErrProtocol, len(a.Content), n)
	}
	f.client.read.Add(n)
	k, err := w.Write(a.Content)
	return int64(k), err
}

// Checksum returns the checksum of n bytes from an offset, as the server computes it. It fails with ErrChanged.
func (f *File) Checksum(ctx context.Context, kind Sum, off, n int64) ([]byte, error) {
	if err := f.usable(off, n); err != nil {
		return nil, err
	}
	return f.client.checksum(ctx, f.name, &wire.Range{Handle: f.handle, Kind: string(kind), Off: off, Len: n})
}

func (c *Client) checksum(ctx context.Context, name string, q *wire.Range) ([]byte, error) {
	var a wire.Sum
	_, err := c.call(ctx, wire.ProcSum, "checksum", name, q, &a)
	return a.Sum, err
}

// Close closes the file at the server, and does not wait for that. Other calls fail with ErrClosed from then on.
func (f *File) Close() error {
	if f.closed.Swap(true) {
		return &fs.PathError{Op: "close", Path: f.name, Err: ErrClosed}
	}
	f.client.closeHandle(f.handle)
	f.own.close()
	f.client.own.Delete(&f.own)
	return nil
}
