package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"pinwheel/comm/files/internal/wire"
)

// buffers of copies out of a connection, or by a descriptor.
var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }} // 256 KiB

// answerTime is how long a server may take to say why a connection has ended: it may wait for one that it did not let
// in.
const answerTime = time.Second

// copyStream writes a range of the file to w, by way of a data connection.
func (f *File) copyStream(ctx context.Context, w io.Writer, off, n int64) (int64, error) {
	c := f.client
	e, err := c.dataConn(ctx, c.data, f.name)
	if err != nil {
		return 0, err
	}
	asking, giveUp := context.WithCancel(ctx)
	defer giveUp()
	said := make(chan error, 1)
	go func() {
		var a wire.Moved
		q := wire.Stream{Handle: f.handle, Off: off, Len: n, Conn: e.number}
		_, err := c.call(asking, wire.ProcStream, "read", f.name, &q, &a)
		if err == nil && a.Bytes < n {
			err = fmt.Errorf("%w: %d bytes of %d", ErrProtocol, a.Bytes, n)
		}
		if err != nil {
			_ = e.SetReadDeadline(time.Unix(1, 0)) // nothing more comes. It fails only if it is closed
		}
		said <- err
	}()
	stop := context.AfterFunc(c.ctx, func() { e.Close() })
	defer stop()
	if _, ours := w.(*into); !ours {
		w = struct{ io.Writer }{w} // a ReadFrom may take little at a time, as that of io.Discard does
	}
	b := buffers.Get().(*[]byte)
	defer buffers.Put(b)
	copied, err := io.CopyBuffer(w, io.LimitReader(e.Conn, n), *b)
	c.read.Add(copied)
	if copied < n {
		e.Close() // the server may be sending still, and says then that it can't
		defer time.AfterFunc(answerTime, giveUp).Stop()
	}
	asked := <-said
	if errors.Is(asked, context.Canceled) && ctx.Err() == nil { // it says nothing any more
		asked = dataGone(io.ErrUnexpectedEOF)
	}
	if asked != nil && (err == nil || errors.As(err, new(*net.OpError))) {
		err = asked // it knows why nothing came
	}
	if err == nil && copied < n {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		c.drop(e)
		return copied, err
	}
	e.keep()
	return copied, nil
}
