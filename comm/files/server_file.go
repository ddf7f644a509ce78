package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"syscall"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/holes"
	"pinwheel/comm/files/internal/wire"
)

// served is a file that a client has open for reading.
type served struct {
	name  string
	file  *os.File
	stamp stamp
	grows atomic.Bool // what is appended to it is no change
}

func (f *served) close() { _ = f.file.Close() } // nothing was written

// unchanged fails if the file is not the one that was opened.
func (f *served) unchanged() error {
	s, err := stampOf(f.file)
	if err == nil && !f.is(s) {
		err = ErrChanged
	}
	return err
}

// clamp returns how many of n bytes from off the file has.
func (f *served) clamp(off, n int64) int64 { return max(min(n, f.stamp.size-off), 0) }

// openFlags keep a FIFO from blocking whoever opens it, and a terminal from becoming that of this process.
const openFlags = unix.O_NONBLOCK | unix.O_NOCTTY

// openFile opens what a name stands for.
func (v *session) openFile(name string) (*os.File, stamp, error) {
	f, err := v.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, stamp{}, rootError(err)
	}
	s, err := stampOf(f)
	if err != nil {
		return nil, s, errors.Join(err, f.Close())
	}
	return f, s, nil
}

// openRegular is openFile for a regular file.
func (v *session) openRegular(name string) (*served, error) {
	f, s, err := v.openFile(name)
	if err != nil {
		return nil, err
	}
	if err := s.regular(int(f.Fd())); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &served{name: name, file: f, stamp: s}, nil
}

func (v *session) stat(_ context.Context, q *wire.Name) (wire.Message, error) {
	if err := v.allowed(Read, q.Name); err != nil {
		return nil, err
	}
	i, err := v.root.Stat(q.Name)
	if err != nil {
		return nil, rootError(err)
	}
	st, ok := i.Sys().(*syscall.Stat_t)
	if !ok {
		return nil, syscall.ENOTSUP
	}
	s := makeStamp(st)
	return message(s.info(path.Base(q.Name))), nil
}

// message is how an Info goes over the wire.
func message(i Info) *wire.Info {
	return &wire.Info{
		Name: i.name, Size: i.size, Mode: uint32(i.mode), ModTime: wire.TimeOf(i.modTime), ETag: string(i.etag),
		Allocated: i.room,
	}
}

func (v *session) open(_ context.Context, q *wire.Name) (wire.Message, error) {
	if err := v.allowed(Read, q.Name); err != nil {
		return nil, err
	}
	f, err := v.openRegular(q.Name)
	if err != nil {
		return nil, err
	}
	h, err := v.handles.add(f)
	if err != nil {
		return nil, err
	}
	return &wire.Opened{Handle: h, Info: *message(f.stamp.info(path.Base(q.Name)))}, nil
}

// sum answers with a checksum.
func (v *session) sum(ctx context.Context, q *wire.Range) (wire.Message, error) {
	if u, err := find[*uploading](&v.handles, q.Handle); err == nil {
		b, err := v.sumOf(ctx, u.file.File, Sum(q.Kind), q.Off, q.Len)
		return &wire.Sum{Sum: b}, err
	}
	f, err := find[*served](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	b, err := v.sumOf(ctx, f.file, Sum(q.Kind), q.Off, q.Len)
	if changed := f.unchanged(); changed != nil {
		err = changed
	}
	return &wire.Sum{Sum: b}, err
}

// sumOf is sumOf in its turn: more checksums at a time would only take more memory.
func (v *session) sumOf(ctx context.Context, f *os.File, kind Sum, off, n int64) ([]byte, error) {
	select {
	case v.sums <- struct{}{}:
		defer func() { <-v.sums }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return sumOf(ctx, f, kind, off, n, v.progress)
}

// zeroBytes are what a hole reads as.
var zeroBytes [256 << 10]byte // 256 KiB

// sumOf computes a checksum of what a file has, and tells of its progress. It fails with io.ErrUnexpectedEOF if the
// file has less. It reads no large holes, which would fill the page cache with zeros.
func sumOf(ctx context.Context, f *os.File, kind Sum, off, n int64, progress func()) ([]byte, error) {
	h, err := kind.New()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", syscall.EINVAL, err)
	}
	if h == nil {
		return nil, nil
	}
	s, err := stampOf(f)
	if err != nil {
		return nil, err
	}
	if n > max(s.size-off, 0) {
		return nil, io.ErrUnexpectedEOF
	}
	b := make([]byte, min(n, int64(len(zeroBytes))))
	for data, hole, end := off, off, off+n; off < end; {
		if progress(); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if off == hole {
			if data, hole, err = holes.NextData(f, off, end); err != nil {
				return nil, err
			}
		}
		if off < data {
			k := min(data-off, int64(len(zeroBytes)))
			h.Write(zeroBytes[:k])
			off += k
			continue
		}
		k, err := f.ReadAt(b[:min(hole-off, int64(len(b)))], off)
		h.Write(b[:k])
		if off += int64(k); err != nil && off < hole {
			return nil, short(err)
		}
	}
	return h.Sum(nil), nil
}
