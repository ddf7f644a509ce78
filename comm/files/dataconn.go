package files

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"syscall"
	"time"

	"pinwheel/comm/files/internal/wire"
)

// dataConn is a connection that a client was given a ticket for. It is for one transfer at a time.
type dataConn struct {
	of     *dataListener
	ticket [wire.TicketLen]byte
	expiry *time.Timer
	came   chan struct{} // closed when it has come, or never will
	using  sync.Mutex

	// mu protects what follows. It is a leaf.
	mu   sync.Mutex
	conn dataSocket // nil: it has not come, or was closed
	over bool       // it has come, or never will
}

func (c *dataConn) arrived(t dataSocket) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		t.Close()
		return
	}
	c.conn, c.over = t, true
	close(c.came)
}

func (c *dataConn) close() {
	c.expiry.Stop()
	c.of.mu.Lock()
	delete(c.of.tickets, c.ticket)
	c.of.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.over = true
		close(c.came)
	}
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// await waits for the connection. If it will never come, or ctx ends, it closes it.
func (c *dataConn) await(ctx context.Context) (dataSocket, error) {
	select {
	case <-c.came:
	case <-ctx.Done():
		c.close()
		return nil, context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return nil, fmt.Errorf("%w: the data connection", syscall.ECONNRESET)
	}
	return c.conn, nil
}

// dataConn waits for a data connection of the client, by its number. Until whoever has it unlocks using, nobody else
// has.
func (v *session) dataConn(ctx context.Context, number uint64) (*dataConn, dataSocket, error) {
	c, err := find[*dataConn](&v.handles, number)
	if err != nil {
		return nil, nil, err
	}
	c.using.Lock()
	conn, err := c.await(ctx)
	if err != nil {
		c.using.Unlock()
		return nil, nil, err
	}
	return c, conn, nil
}

// ticket gives out a ticket.
func (v *session) ticket(_ context.Context, q *wire.DataConn) (wire.Message, error) {
	of := v.data
	switch {
	case q.Local && v.local == nil:
		return nil, fmt.Errorf("%w: no connection on this machine", syscall.EACCES)
	case q.Local:
		of = v.local
	case !v.trusted.Load():
		return nil, fmt.Errorf("%w: no connection without encryption", syscall.EACCES)
	}
	c := &dataConn{of: of, came: make(chan struct{})}
	rand.Read(c.ticket[:])
	c.mu.Lock()
	c.expiry = time.AfterFunc(ticketTime, func() {
		c.mu.Lock()
		late := !c.over
		c.mu.Unlock()
		if late {
			c.close()
		}
	})
	c.mu.Unlock()
	h, err := v.handles.add(c)
	if err != nil {
		return nil, err
	}
	of.mu.Lock()
	of.tickets[c.ticket] = c
	of.mu.Unlock()
	return &wire.Ticket{Conn: h, Ticket: c.ticket[:]}, nil
}
