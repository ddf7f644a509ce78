package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"pinwheel/files/internal/wire"
)

// dataPool has the TCP connections of a client for file bytes without encryption.
type dataPool struct {
	address string // of the server's listener for these

	// mu protects what follows. It is a leaf.
	mu     sync.Mutex
	idle   []*dataEnd
	closed bool
}

// dataEnd is the client's end of such a connection. It carries one transfer at a time.
type dataEnd struct {
	*net.TCPConn
	number uint64 // at the server
}

// get returns a connection, which it makes if none is idle.
func (c *Client) dataConn(ctx context.Context, name string) (*dataEnd, error) {
	p := c.data
	p.mu.Lock()
	if k := len(p.idle); k > 0 {
		e := p.idle[k-1]
		p.idle = p.idle[:k-1]
		p.mu.Unlock()
		return e, nil
	}
	p.mu.Unlock()
	var t wire.Ticket
	if _, err := c.call(ctx, wire.ProcTicket, "read", name, &wire.Empty{}, &t); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", p.address)
	if err == nil {
		if _, err = conn.Write(t.Ticket); err != nil {
			conn.Close()
		}
	}
	if err != nil {
		c.closeHandle(t.Conn)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, dataGone(err)
	}
	return &dataEnd{conn.(*net.TCPConn), t.Conn}, nil
}

// dataGone is the error of a data connection that the server has not taken, or has ended without saying why.
func dataGone(err error) error { return fmt.Errorf("%w: data connection: %w", ErrPeerGone, err) }

// keep keeps a connection for the next transfer.
func (c *Client) keep(e *dataEnd) {
	p := c.data
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		e.Close()
		return
	}
	p.idle = append(p.idle, e)
}

// drop closes a connection at both ends.
func (c *Client) drop(e *dataEnd) {
	e.Close()
	c.closeHandle(e.number)
}

func (p *dataPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, e := range p.idle {
		e.Close()
	}
	p.idle = nil
}

// buffers of copies out of a connection.
var buffers = sync.Pool{New: func() any { b := make([]byte, 256<<10); return &b }} // 256 KiB

// answerTime is how long a server may take to say why a connection has ended: it may wait for one that it did not let
// in.
const answerTime = time.Second

// copyStream writes a range of the file to w, by way of a data connection.
func (f *File) copyStream(ctx context.Context, w io.Writer, off, n int64) (int64, error) {
	c := f.client
	e, err := c.dataConn(ctx, f.name)
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
	copied, err := io.CopyBuffer(w, io.LimitReader(e.TCPConn, n), *b)
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
	c.keep(e)
	return copied, nil
}
