package files

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/files/internal/wire"
)

// stream sends a range of a file through a data connection. If it can't send all, it closes that.
func (v *session) stream(ctx context.Context, q *wire.Stream) (wire.Message, error) {
	c, conn, err := v.dataConn(ctx, q.Conn)
	if err != nil {
		return nil, err
	}
	defer c.using.Unlock()
	var n int64
	f, err := find[*served](&v.handles, q.Handle)
	if err == nil {
		n, err = sendRange(ctx, conn, f, q.Off, q.Len, func(n int) {
			v.counters.sendfile.Add(int64(n))
			v.progress()
		})
	}
	if err != nil {
		c.close()
		return nil, &partial{n, err}
	}
	return &wire.Moved{Bytes: n, Way: BySendfile}, nil
}

// sendRange sends what a file has of a range, and tells how it gets on: a client may take hours for one. It fails if the
// file changes, also after the last byte.
func sendRange(
	ctx context.Context, to dataSocket, f *served, off, n int64, sent func(n int),
) (done int64, err error) {
	if err := f.unchanged(); err != nil {
		return 0, err
	}
	n = f.clamp(off, n)
	stop := context.AfterFunc(ctx, func() { to.Close() })
	defer stop()
	for done < n && err == nil {
		// A deadline for as much as the socket takes at once: a client may be slow, but not idle.
		if err = to.SetWriteDeadline(time.Now().Add(stallTime)); err == nil {
			var k int
			k, err = sendfile(to, f.file, off+done, n-done)
			done += int64(k)
			sent(k)
		}
	}
	if ctx.Err() != nil {
		return done, context.Cause(ctx)
	}
	if changed := f.unchanged(); changed != nil {
		err = changed
	}
	return done, err
}

// mostSendfile is how much one call of sendfile(2) sends at most.
const mostSendfile = 1 << 30 // 1 GiB

// sendfile calls sendfile(2) once that the socket has room.
func sendfile(to syscall.Conn, f *os.File, off, n int64) (sent int, err error) {
	out, err := to.SyscallConn()
	if err != nil {
		return 0, err
	}
	in, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var waited error
	if err := in.Control(func(from uintptr) {
		waited = out.Write(func(fd uintptr) bool {
			for {
				sent, err = unix.Sendfile(int(fd), int(from), &off, int(min(n, mostSendfile)))
				if !errors.Is(err, unix.EINTR) {
					return !errors.Is(err, unix.EAGAIN)
				}
			}
		})
	}); err != nil {
		return 0, err
	}
	switch {
	case waited != nil:
		return 0, waited
	case err != nil:
		return 0, os.NewSyscallError("sendfile", err)
	case sent == 0:
		return 0, io.ErrUnexpectedEOF
	}
	return sent, nil
}
