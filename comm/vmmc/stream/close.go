package stream

import (
	"context"
	"errors"
	"net"
	"time"

	"pinwheel/comm/vmmc"
)

// CloseWrite tells the peer that nothing more comes: its Read returns io.EOF after all that was written. This
// end can still read. If it fails with os.ErrDeadlineExceeded, that of Write, the peer has not heard of it.
func (c *Conn) CloseWrite() error {
	c.writing.Lock()
	defer c.writing.Unlock()
	select {
	case <-c.closed:
		return c.opError("close", net.ErrClosed)
	default:
	}
	if c.over {
		return nil
	}
	for {
		_, err := c.tell(stateAt, writeClosed)
		if err == nil {
			c.over = true
			return nil
		}
		if !errors.Is(err, vmmc.ErrTooManyOps) {
			return c.opError("close", c.ended(err))
		}
		wait(c, time.After(crowded), &c.writeDeadline)
		if err := c.usable(&c.writeDeadline); err != nil {
			return c.opError("close", err)
		}
	}
}

// Close ends the connection. The peer can read what was written. Calls that wait return net.ErrClosed.
func (c *Conn) Close() error { return c.shut((*Conn).farewell) }

// Abort ends the connection as if this process had been killed: the Read of the peer fails, and does not
// return io.EOF.
func (c *Conn) Abort() error { return c.shut((*Conn).reached) }

// shut closes the connection. last is what it has to do with the peer before it is gone.
func (c *Conn) shut(last func(*Conn, context.Context)) error {
	err := c.opError("close", net.ErrClosed)
	c.closing.Do(func() {
		close(c.closed)
		err = nil
		go c.end(last)
	})
	return err
}

// abandon ends the connection, as its node closes, and waits until nobody looks into its memory. A peer of a
// connection that was closed before gets what was written.
func (c *Conn) abandon() {
	_ = c.shut(func(*Conn, context.Context) {}) // it fails if it was closed before
	<-c.told
	c.unused()
}

// unused waits until no call looks into the memory; those that come find the connection closed.
func (c *Conn) unused() {
	c.reading.Lock()
	defer c.reading.Unlock()
	c.writing.Lock()
	defer c.writing.Unlock()
}

// end gives everything back, after the peer has heard of it. The peer may not want to: that takes a while, and no
// longer.
func (c *Conn) end(last func(*Conn, context.Context)) {
	c.mu.Lock()
	to := c.to
	c.mu.Unlock()
	if to != nil {
		ctx, cancel := context.WithTimeout(context.Background(), c.linger)
		last(c, ctx)
		cancel()
		to.Unimport()
	}
	close(c.told)
	c.unused()
	c.mu.Lock()
	forget := c.forget
	c.mu.Unlock()
	if forget != nil {
		forget()
	}
	// They fail only if the node has been closed: then it has done this.
	_ = c.export.Unexport(context.Background())
	c.mu.Lock()
	c.freed = true
	released := c.released
	c.mu.Unlock()
	_ = c.node.Free(c.in.data)
	if released != nil {
		released()
	}
}

// farewell tells the peer of the end, and waits until it has heard: whoever finds an inbox gone without a word
// must take it for a failure.
func (c *Conn) farewell(ctx context.Context) {
	c.writing.Lock() // what a Write has begun to send comes first
	op, err := c.say(ctx, stateAt, closed)
	c.writing.Unlock()
	if err == nil {
		_ = op.Wait(ctx)
	}
	c.reached(ctx)
}

// reached waits until an end that dialled has the inbox of this one: without that it gets no connection, from
// which to read what was written, or to hear of a failure.
func (c *Conn) reached(ctx context.Context) {
	c.mu.Lock()
	accepted := c.accepted
	c.mu.Unlock()
	if accepted {
		select {
		case <-c.answered:
		case <-c.to.Done():
		case <-ctx.Done():
		}
	}
}
