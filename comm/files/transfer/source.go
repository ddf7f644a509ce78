package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/comm/files"
	"pinwheel/comm/files/internal/holes"
	"pinwheel/comm/files/internal/unsized"
)

// source is a local file that is open.
type source struct {
	*os.File
	info  fs.FileInfo // of when it was opened
	meter *atomic.Int64
	moved atomic.Int64 // what this copy has added to meter
}

// open opens a local file, and notes in meter what is read of it.
func (d *folder) open(name string, meter *atomic.Int64) (*source, error) {
	f, err := d.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // it may have become a FIFO
	if err != nil {
		return nil, d.fault(name, err)
	}
	s := &source{File: f, meter: meter}
	if s.info, err = f.Stat(); err == nil && !s.info.Mode().IsRegular() {
		err = errors.New("is no regular file")
	}
	if err == nil {
		err = unsized.Check(int(f.Fd()), s.info.Size())
	}
	if err != nil {
		f.Close()
		return nil, d.fault(name, err)
	}
	return s, nil
}

// ReadAt implements io.ReaderAt, for what is sent.
func (s *source) ReadAt(b []byte, off int64) (int, error) {
	n, err := s.File.ReadAt(b, off)
	s.move(int64(n))
	return n, err
}

func (s *source) move(n int64) {
	s.moved.Add(n)
	s.meter.Add(n)
}

// createOptions give the copy the mode and the time of the source. The owner of a file that nobody may open may read
// its copy: no mode at all would be the default of the server.
func (s *source) createOptions() files.CreateOptions {
	return files.CreateOptions{Perm: cmp.Or(s.info.Mode().Perm(), 0o400), ModTime: s.info.ModTime()}
}

// changed fails if the file is another one than when it was opened. If it only has more, that is not strictly so.
func (s *source) changed(strict bool) (grew bool, err error) {
	now, err := s.Stat()
	if err != nil {
		return false, err
	}
	if now.Size() > s.info.Size() && !strict {
		return true, nil
	}
	before, after := s.info.Sys().(*syscall.Stat_t), now.Sys().(*syscall.Stat_t)
	if !same(s.info, now) || before.Ctim != after.Ctim {
		return false, files.ErrChanged
	}
	return false, nil
}

// hash returns the checksum of the file.
func (s *source) hash(ctx context.Context, kind files.Sum) ([]byte, error) {
	h, err := kind.New()
	if h == nil {
		return nil, err
	}
	err = hashFile(ctx, h, s.File, s.info.Size())
	if errors.Is(err, io.EOF) { // it was cut, or this is its end: changed and Commit tell
		err = nil
	}
	return h.Sum(nil), err
}

// data calls send for each part of the file from an offset that is no hole.
func (s *source) data(from int64, send func(off, n int64) error) error {
	size := s.info.Size()
	if st := s.info.Sys().(*syscall.Stat_t); st.Blocks*512 >= size {
		return send(from, size-from)
	}
	for from < size {
		begin, end, err := holes.NextData(s.File, from, size)
		if err != nil || begin >= end {
			return err
		}
		if err := send(begin, end-begin); err != nil {
			return err
		}
		from = end
	}
	return nil
}
