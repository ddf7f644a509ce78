package transfer

import (
	"bytes"
	"context"
	"errors"
	"hash"
	"io"
	"os"

	"go.uber.org/atomic"

	"pinwheel/comm/files"
)

// sink gets the bytes of a file in order: it hashes them and writes them out, while others arrive.
type sink struct {
	*partial
	sum     hashed
	meter   *atomic.Int64
	metered int64
	queued  int64 // up to where the kernel was told to write to the disk
}

// queueBytes are written to the disk at a time.
const queueBytes = 8 << 20 // 8 MiB

// begin hashes what is there already.
func (s *sink) begin(ctx context.Context, kind files.Sum) (err error) {
	s.sum.Hash, err = kind.New()
	s.queued = s.bytes
	s.move(s.bytes)
	if err == nil {
		err = s.fault(hashFile(ctx, s.sum.Hash, s.file, s.bytes))
	}
	return err
}

// copy gets the rest of a file.
func (s *sink) copy(ctx context.Context, f *files.File) error {
	if size := f.Info().Size(); s.bytes < size && f.Info().Allocated() >= size {
		if err := s.preallocate(size); err != nil {
			return err
		}
	}
	return fetch(ctx, f, s.bytes, s, s.skip)
}

// fetch gets a file from an offset on, in order. Holes are not transferred: skip gets their ends.
func fetch(
	ctx context.Context, f *files.File, from int64, w io.Writer, skip func(ctx context.Context, to int64) error,
) error {
	size := f.Info().Size()
	if from >= size {
		return nil
	}
	if f.Info().Allocated() >= size {
		_, err := f.CopyRange(ctx, w, from, size-from)
		return err
	}
	for data, err := range f.Data(ctx, from) {
		if err == nil {
			err = skip(ctx, data.Off)
		}
		if err == nil {
			_, err = f.CopyRange(ctx, w, data.Off, data.Len)
		}
		if err != nil {
			return err
		}
	}
	return skip(ctx, size)
}

// skip leaves a hole up to an offset.
func (s *sink) skip(ctx context.Context, to int64) error {
	for s.bytes < to {
		n := min(to-s.bytes, holeBytes)
		_, _ = s.sum.Write(zeros[:n]) // hashes don't fail
		s.bytes += n
		s.move(n)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Write implements io.Writer.
func (s *sink) Write(b []byte) (int, error) {
	before := s.bytes
	if err := s.write(b); err != nil {
		return int(s.bytes - before), err
	}
	if _, err := s.sum.Write(b); err != nil {
		return 0, err
	}
	s.wrote(int64(len(b)))
	return len(b), nil
}

// WriteFileRange implements files.FileRangeWriter, unless there is something to hash.
func (s *sink) WriteFileRange(f *os.File, off, n int64) (int64, error) {
	if s.sum.Hash != nil {
		return 0, errors.ErrUnsupported
	}
	k, err := s.writeFileRange(f, off, n)
	s.wrote(k)
	return k, err
}

func (s *sink) wrote(n int64) {
	s.move(n)
	if n := s.bytes - s.queued; n >= queueBytes {
		s.startWriting(s.queued, n)
		s.queued = s.bytes
	}
}

func (s *sink) move(n int64) {
	s.metered += n
	s.meter.Add(n)
}

// hashed is a hash, or nothing for files.NoSum.
type hashed struct{ hash.Hash }

func (h hashed) Write(b []byte) (int, error) {
	if h.Hash == nil {
		return len(b), nil
	}
	return h.Hash.Write(b)
}

// compare waits for another checksum, which is to be the same.
func (h hashed) compare(p *pending) error {
	sum, err := p.wait()
	if err == nil && h.Hash != nil && !bytes.Equal(sum, h.Sum(nil)) {
		err = files.ErrChecksum
	}
	return err
}

// pending is a checksum that is computed while the file is on its way.
type pending struct {
	done chan struct{}
	sum  []byte
	err  error
}

// inBackground computes a checksum.
func inBackground(compute func() ([]byte, error)) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.sum, p.err = compute()
	}()
	return p
}

func (p *pending) wait() ([]byte, error) {
	<-p.done
	return p.sum, p.err
}

// theirs asks for the checksum of a file, which the server computes. wait ends soon after ctx.
func theirs(ctx context.Context, f *files.File, kind files.Sum) *pending {
	return inBackground(func() ([]byte, error) {
		if kind == files.NoSum {
			return nil, nil
		}
		return f.Checksum(ctx, kind, 0, f.Info().Size())
	})
}

// compare waits for the checksum of the server.
func (s *sink) compare(p *pending) error {
	return s.sum.compare(p)
}
