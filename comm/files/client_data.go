package files

import (
	"context"
	"fmt"
	"net"
	"sync"

	"pinwheel/comm/files/internal/wire"
)

// dataPool has the connections of a client to one data listener of the server.
type dataPool struct {
	network, address string // of the listener

	// mu protects what follows. It is a leaf.
	mu     sync.Mutex
	idle   []*dataEnd
	closed bool
}

// dataEnd is the client's end of such a connection. It carries one transfer at a time.
type dataEnd struct {
	net.Conn
	of     *dataPool
	number uint64 // at the server
}

// dataConn returns a connection, which it makes if none is idle.
func (c *Client) dataConn(ctx context.Context, p *dataPool, name string) (*dataEnd, error) {
	p.mu.Lock()
	if k := len(p.idle); k > 0 {
		e := p.idle[k-1]
		p.idle = p.idle[:k-1]
		p.mu.Unlock()
		return e, nil
	}
	p.mu.Unlock()
	var t wire.Ticket
	q := wire.DataConn{Local: p == c.local}
	if _, err := c.call(ctx, wire.ProcTicket, "read", name, &q, &t); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, p.network, p.address)
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
	return &dataEnd{conn, p, t.Conn}, nil
}

// dataGone is the error of a data connection that the server has not taken, or has ended without saying why.
func dataGone(err error) error { return fmt.Errorf("%w: data connection: %w", ErrPeerGone, err) }

// keep keeps a connection for the next transfer.
func (e *dataEnd) keep() {
	p := e.of
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
