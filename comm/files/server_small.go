package files

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/wire"
)

// contents are an answer whose contents lie in memory that is used again.
type contents struct {
	wire.Contents
	memory *[]byte
}

// arenas have the memory of answers.
var arenas = sync.Pool{New: func() any { return new([]byte) }}

// take returns n bytes.
func (a *contents) take(n int64) []byte {
	m := a.memory
	at := len(*m)
	*m = slices.Grow(*m, int(n))[:at+int(n)] // what was taken before stays where it is
	return (*m)[at:]
}

// done gives the memory back: the answer is written.
func (a *contents) done() {
	if a.memory != nil {
		*a.memory = (*a.memory)[:0]
		arenas.Put(a.memory)
	}
}

// readMany answers with the contents of the first files, as many as have room.
func (v *session) readMany(ctx context.Context, q *wire.Names) (wire.Message, error) {
	a := &contents{memory: arenas.Get().(*[]byte)}
	h, err := Sum(q.Kind).New()
	if err != nil {
		return a, fmt.Errorf("%w: %w", syscall.EINVAL, err)
	}
	all := 0
	d := nearby{session: v}
	defer d.close()
	for _, name := range q.Names {
		if all >= wire.ManyBytes || ctx.Err() != nil {
			break
		}
		content, info, err := d.readSmall(name, a)
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
	if q.Conn != 0 {
		return a, v.streamContents(ctx, a, q.Conn)
	}
	v.counters.small.Add(int64(all))
	return a, ctx.Err()
}

// streamContents sends the contents of an answer through a data connection, behind the answer.
func (v *session) streamContents(ctx context.Context, a *contents, number uint64) error {
	c, conn, err := v.dataConn(ctx, number)
	if err != nil {
		return err
	}
	var all net.Buffers
	for k := range a.Files {
		if f := &a.Files[k]; len(f.Content) > 0 {
			all, f.Content = append(all, f.Content), nil
		}
	}
	sent := contents{memory: a.memory}
	a.memory = nil
	v.sending.Go(func() {
		defer sent.done()
		defer c.using.Unlock()
		for len(all) > 0 {
			some := all[:min(len(all), stallParts)]
			all = all[len(some):]
			n, err := int64(0), conn.SetWriteDeadline(time.Now().Add(stallTime))
			if err == nil {
				n, err = some.WriteTo(conn)
			}
			if v.counters.sendfile.Add(n); err != nil {
				c.close() // the client hears of it by the end of the connection
				return
			}
			v.progress()
		}
	})
	return nil
}

// stallParts is how many small files a client may take stallTime for.
const stallParts = 16

// nearby reads files of which many are in the same directory, which it keeps open.
type nearby struct {
	*session
	name string
	dir  *os.File // of that name; nil: none yet
}

func (d *nearby) close() {
	if d.dir != nil {
		_ = d.dir.Close() // nothing was written
		d.dir = nil
	}
}

// open opens what a name stands for, of which more than its last element is resolved only if that is in another
// directory than the one before.
func (d *nearby) open(name string) (fd int, err error) {
	in, base := path.Dir(name), path.Base(name)
	if d.dir == nil || in != d.name {
		d.close()
		if d.dir, err = d.root.OpenFile(in, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0); err != nil {
			d.dir = nil
			return -1, rootError(err)
		}
		d.name = in
	}
	fd, err = unix.Openat(int(d.dir.Fd()), base, unix.O_RDONLY|unix.O_NOFOLLOW|openFlags|unix.O_CLOEXEC, 0)
	if !errors.Is(err, unix.ELOOP) {
		return fd, err
	}
	f, err := d.root.OpenFile(name, os.O_RDONLY|openFlags, 0) // which keeps symbolic links within
	if err != nil {
		return -1, rootError(err)
	}
	defer f.Close()
	return unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
}

// smallTries is how often a small file is read that changes meanwhile.
const smallTries = 3

// readSmall reads a file, into memory of an answer.
func (d *nearby) readSmall(name string, to *contents) (content []byte, info Info, err error) {
	if err := d.allowed(Read, name); err != nil {
		return nil, info, err
	}
	for range smallTries {
		fd, err := d.open(name)
		if err != nil {
			return nil, info, err
		}
		var s stamp
		content, s, err = readAll(fd, to)
		_ = unix.Close(fd) // nothing was written
		if !errors.Is(err, ErrChanged) {
			return content, s.info(path.Base(name)), err
		}
	}
	return nil, info, ErrChanged
}

// readAll reads a small file, into memory of an answer. It fails with ErrChanged if that changes meanwhile.
func readAll(fd int, to *contents) (content []byte, s stamp, err error) {
	if s, err = stampOfFD(fd); err == nil {
		err = s.regular(fd)
	}
	switch {
	case err != nil:
		return nil, s, err
	case s.size > SmallBytes:
		return nil, s, ErrNotSmall
	}
	content = to.take(s.size)
	for n := 0; n < len(content); {
		k, err := unix.Pread(fd, content[n:], int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, s, os.NewSyscallError("pread", err)
		case k == 0:
			return nil, s, ErrChanged // it had more
		default:
			n += k
		}
	}
	after, err := stampOfFD(fd)
	if err == nil && !after.same(s) {
		err = ErrChanged
	}
	return content, s, err
}
