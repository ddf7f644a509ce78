package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"pinwheel/files/internal/wire"
)

// served is a file that a client has open for reading.
type served struct {
	file  *os.File
	stamp stamp
}

func (f *served) close() { _ = f.file.Close() } // nothing was written

// unchanged fails if the file is not the one that was opened.
func (f *served) unchanged() error {
	s, err := stampOf(f.file)
	if err == nil && !s.same(f.stamp) {
		err = ErrChanged
	}
	return err
}

// clamp returns how many of n bytes from off the file has.
func (f *served) clamp(off, n int64) int64 { return max(min(n, f.stamp.size-off), 0) }

// openFile opens what a name stands for. A FIFO does not block it.
func (v *session) openFile(name string) (*os.File, stamp, error) {
	f, err := v.root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
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
	switch {
	case err != nil:
		return nil, err
	case s.mode.IsDir():
		err = syscall.EISDIR
	case !s.mode.IsRegular():
		err = fmt.Errorf("%w: no regular file", syscall.EINVAL)
	default:
		return &served{f, s}, nil
	}
	return nil, errors.Join(err, f.Close())
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
		Name: i.name, Size: i.size, Mode: uint32(i.mode), ModNs: i.modTime.UnixNano(), ETag: string(i.etag),
	}
}

func (v *session) open(_ context.Context, q *wire.Name) (wire.Message, error) {
	if err := v.allowed(Read, q.Name); err != nil {
		return nil, err
	}
	var o opened
	var s stamp
	if q.Dir {
		f, st, err := v.openFile(q.Name)
		if err == nil && !st.mode.IsDir() {
			err = errors.Join(syscall.ENOTDIR, f.Close())
		}
		if err != nil {
			return nil, err
		}
		o, s = &listing{file: f}, st
	} else {
		f, err := v.openRegular(q.Name)
		if err != nil {
			return nil, err
		}
		o, s = f, f.stamp
	}
	h, err := v.handles.add(o)
	if err != nil {
		return nil, err
	}
	return &wire.Opened{Handle: h, Info: *message(s.info(path.Base(q.Name)))}, nil
}

// listing is a directory that a client lists.
type listing struct {
	file *os.File
	mu   sync.Mutex // held while a page is read
}

func (l *listing) close() { _ = l.file.Close() } // nothing was written

// list answers with the next page. Symbolic links are described, not followed.
func (v *session) list(_ context.Context, q *wire.Handle) (wire.Message, error) {
	l, err := find[*listing](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	page := &wire.Page{}
	for len(page.Entries) == 0 {
		names, err := l.file.Readdirnames(wire.MaxPage)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if len(names) == 0 {
			break
		}
		if page.Entries, err = l.describe(names); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// describe describes entries by their names; those that are gone, or hidden, are left out.
func (l *listing) describe(names []string) (entries []wire.Info, err error) {
	c, err := l.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	e := c.Control(func(fd uintptr) {
		for _, name := range names {
			var st unix.Stat_t
			if checkName(name) != nil || unix.Fstatat(int(fd), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue
			}
			s := makeStamp(&syscall.Stat_t{
				Dev: st.Dev, Ino: st.Ino, Size: st.Size, Mode: st.Mode, Blocks: st.Blocks,
				Mtim: syscall.Timespec(st.Mtim), Ctim: syscall.Timespec(st.Ctim),
			})
			entries = append(entries, *message(s.info(name)))
		}
	})
	return entries, e
}

// readMany answers with the contents of the first files, as many as have room.
func (v *session) readMany(ctx context.Context, q *wire.Names) (wire.Message, error) {
	a := &wire.Contents{}
	h, err := Sum(q.Kind).New()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", syscall.EINVAL, err)
	}
	all := 0
	for _, name := range q.Names {
		if all >= wire.ManyBytes || ctx.Err() != nil {
			break
		}
		content, info, err := v.readSmall(name)
		if err != nil {
			a.Files = append(a.Files, wire.Content{Status: *statusOf(err)})
			continue
		}
		c := wire.Content{Info: *message(info), Content: content}
		if h != nil {
			h.Reset()
			h.Write(content)
			c.Sum = h.Sum(nil)
		}
		a.Files = append(a.Files, c)
		all += len(content)
	}
	v.counters.small.Add(int64(all))
	return a, ctx.Err()
}

// smallTries is how often a small file is read that changes meanwhile.
const smallTries = 3

func (v *session) readSmall(name string) (content []byte, info Info, err error) {
	if err := v.allowed(Read, name); err != nil {
		return nil, info, err
	}
	for range smallTries {
		f, err := v.openRegular(name)
		if err != nil {
			return nil, info, err
		}
		if f.stamp.size > SmallBytes {
			return nil, info, errors.Join(ErrNotSmall, f.file.Close())
		}
		content = make([]byte, f.stamp.size)
		_, err = f.file.ReadAt(content, 0)
		changed := f.unchanged()
		f.close()
		switch {
		case changed == nil && err == nil:
			return content, f.stamp.info(path.Base(name)), nil
		case changed == nil:
			return nil, info, short(err)
		}
	}
	return nil, info, ErrChanged
}

func (v *session) sum(ctx context.Context, q *wire.Range) (wire.Message, error) {
	if u, err := find[*uploading](&v.handles, q.Handle); err == nil {
		b, err := sumOf(ctx, u.file, Sum(q.Kind), q.Off, q.Len, v.progress)
		return &wire.Sum{Sum: b}, err
	}
	f, err := find[*served](&v.handles, q.Handle)
	if err != nil {
		return nil, err
	}
	b, err := sumOf(ctx, f.file, Sum(q.Kind), q.Off, q.Len, v.progress)
	if changed := f.unchanged(); changed != nil {
		err = changed
	}
	return &wire.Sum{Sum: b}, err
}

// sumOf computes a checksum of what a file has, and tells of its progress. It fails with io.ErrUnexpectedEOF if the
// file has less.
func sumOf(ctx context.Context, f io.ReaderAt, kind Sum, off, n int64, progress func()) ([]byte, error) {
	h, err := kind.New()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", syscall.EINVAL, err)
	}
	if h == nil {
		return nil, nil
	}
	b := make([]byte, min(n, 256<<10)) // 256 KiB
	for n > 0 {
		if progress(); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		k, err := f.ReadAt(b[:min(n, int64(len(b)))], off)
		h.Write(b[:k])
		if off, n = off+int64(k), n-int64(k); err != nil && n > 0 {
			return nil, short(err)
		}
	}
	return h.Sum(nil), nil
}
