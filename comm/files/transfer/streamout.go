package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"

	"go.uber.org/atomic"

	"pinwheel/comm/files"
)

// GetTo copies a file of a server to w, from its first byte to its last, and then verifies it: if GetTo fails, what w
// got is of no use, or is not all. Holes come as zeros. With Options.Retry, it goes on where it was after the server was
// lost, if the file is still the same. There is no other way to begin anew, so a file that changes meanwhile is an error.
func GetTo(ctx context.Context, c *files.Client, name string, w io.Writer, o Options) (Result, error) {
	if err := o.EnsureDefaults(); err != nil {
		return Result{}, err
	}
	h, err := o.Verify.New()
	if err != nil {
		return Result{}, err
	}
	s := &streamOut{to: w, sum: hashed{h}, meter: &o.Meter.Bytes}
	return o.attempts(ctx, c, func(c *files.Client, o Options) (r Result, err error) {
		name := remoteName(name)
		f, err := openFile(ctx, c, name)
		if err != nil {
			return r, err
		}
		defer f.Close() // it was read
		if err = o.allowGrowth(ctx, f); err != nil {
			return r, err
		}
		o.Meter.TotalBytes.Add(f.Info().Size())
		if err = s.get(ctx, f, o.Verify); errors.Is(err, files.ErrChanged) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = fmt.Errorf("%s: changed while it was copied: what was written is of no use", name)
		}
		grew := false
		if err == nil {
			grew, err = o.grew(ctx, f)
		}
		if err == nil {
			r = Result{Files: 1, Bytes: s.bytes}
			o.Meter.Files.Inc()
		}
		if grew {
			r.Grown = 1
			o.Warn(warnGrew(name))
		}
		return r, err
	})
}

// openFile opens a file to read all of it.
func openFile(ctx context.Context, c *files.Client, name string) (*files.File, error) {
	info, err := c.Stat(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory", name)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	return c.Open(ctx, name)
}

// streamOut gets the bytes of a file in order, by one connection after the other.
type streamOut struct {
	to    io.Writer
	sum   hashed
	meter *atomic.Int64
	bytes int64
	of    files.ETag // of what the bytes are, if there are some
}

// get writes what is missing, and verifies the whole.
func (s *streamOut) get(ctx context.Context, f *files.File, kind files.Sum) error {
	if tag := f.Info().ETag(); s.bytes == 0 {
		s.of = tag
	} else if s.of != tag {
		return files.ErrChanged
	}
	s.meter.Add(s.bytes)
	ctx, cancel := context.WithCancel(ctx)
	sum := theirs(ctx, f, kind)
	defer func() {
		cancel()
		<-sum.done
	}()
	if err := fetch(ctx, f, s.bytes, s, s.skip); err != nil {
		return err
	}
	err := s.sum.compare(sum)
	if errors.Is(err, files.ErrChecksum) {
		err = fmt.Errorf("%s: %w: what was written is of no use", f.Info().Name(), err)
	}
	return err
}

// Write implements io.Writer.
func (s *streamOut) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	_, _ = s.sum.Write(b[:n]) // hashes don't fail
	s.bytes += int64(n)
	s.meter.Add(int64(n))
	return n, err
}

// skip writes zeros up to an offset.
func (s *streamOut) skip(ctx context.Context, to int64) error {
	for s.bytes < to {
		if _, err := s.Write(zeros[:min(to-s.bytes, holeBytes)]); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
