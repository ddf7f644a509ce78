package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/stream"
)

// Client calls procedures of a Server. All methods are safe for concurrent use.
type Client struct {
	conn *stream.Conn
	opt  Options

	// reading has a token for whoever may read: one of the callers, or keep. It protects in, and is taken before mu.
	reading chan struct{}
	in      *frames

	// writing is full while a frame is written. It protects scratch, and is taken before mu.
	writing chan struct{}
	scratch []byte

	// mu protects what follows. It is a leaf.
	mu    sync.Mutex
	calls map[uint64]*call
	last  uint64
	stuck bool  // a frame waits for room
	err   error // why nothing can be called any more
}

// call is one that waits for its reply. Client.mu protects it until done has something.
type call struct {
	reply []byte
	err   error
	done  chan struct{} // has room for one
}

// NewClient takes over a connection.
func NewClient(c *stream.Conn, o Options) *Client {
	o.ensureDefaults()
	cl := &Client{
		conn: c, opt: o, reading: make(chan struct{}, 1), writing: make(chan struct{}, 1), in: newFrames(c, o.MaxBytes),
		calls: map[uint64]*call{},
	}
	cl.reading <- struct{}{}
	return cl
}

// Dial connects to the server for a service, as stream.Dial does.
func Dial(
	ctx context.Context, n *vmmc.Node, address string, service uint32, so stream.Options, o Options,
) (*Client, error) {
	c, err := stream.Dial(ctx, n, address, service, so)
	if err != nil {
		return nil, err
	}
	return NewClient(c, o), nil
}

// idle calls are used again. Their channels are empty.
var idle = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// Call calls a procedure and appends its reply to reply, which may be nil. The request must not change until Call
// returns. It fails with an Error if the handler does, with ErrUnknown, ErrTooMany or ErrTooLong, with the
// error of ctx, with ErrClosed, or with vmmc.ErrPeerGone.
func (c *Client) Call(ctx context.Context, procedure uint32, body, reply []byte) ([]byte, error) {
	if len(body) > c.opt.MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, where %d are allowed", ErrTooLong, len(body), c.opt.MaxBytes)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h := head{kind: request, code: procedure}
	deadline, bounded := ctx.Deadline()
	if bounded {
		if h.left = time.Until(deadline); h.left <= 0 { // ctx may not know yet
			return nil, context.DeadlineExceeded
		}
	}
	w := idle.Get().(*call)
	w.reply, w.err = reply, nil
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return nil, c.err
	}
	c.last++
	h.call = c.last
	c.calls[h.call] = w
	c.mu.Unlock()

	err := c.send(ctx, h, body)
	sent := err == nil
	if sent {
		err = c.wait(ctx, w)
	}
	if err != nil && c.abandon(h.call, sent) {
		return nil, err
	}
	<-w.done
	reply, err = w.reply, w.err
	w.reply = nil
	idle.Put(w)
	if _, said := err.(Error); said && bounded && time.Until(deadline) <= 0 {
		err = context.DeadlineExceeded // of which the handler heard first
	}
	return reply, err
}

// wait reads until a call is over, or another caller has read that. It takes nothing from w.done. It fails
// with the error of ctx.
func (c *Client) wait(ctx context.Context, w *call) error {
	for len(w.done) == 0 {
		select {
		case <-c.reading:
			c.read(ctx, w)
			c.reading <- struct{}{}
		case <-w.done:
			w.done <- struct{}{}
		case <-ctx.Done():
			return ctx.Err()
		}
		if ctx.Err() != nil && len(w.done) == 0 {
			return ctx.Err()
		}
	}
	return nil
}

// read takes frames until a call is over, or its context. The token is held.
func (c *Client) read(ctx context.Context, w *call) {
	if ctx.Done() != nil {
		interrupted := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			_ = c.conn.SetReadDeadline(time.Unix(1, 0)) // it fails only if the connection is closed
			close(interrupted)
		})
		defer func() {
			if !stop() {
				<-interrupted
				_ = c.conn.SetReadDeadline(time.Time{})
			}
		}()
	}
	for len(w.done) == 0 && ctx.Err() == nil {
		if !c.take() {
			return
		}
	}
}

// take takes one frame, and tells whether there may be more. The token is held.
func (c *Client) take() bool {
	h, body, err := c.in.next()
	if err == nil {
		err = c.settle(h, body)
	}
	switch {
	case err == nil:
		return true
	case !errors.Is(err, os.ErrDeadlineExceeded):
		c.fail(err)
	}
	return false
}

// settle gives a call its reply. Nobody may wait for it any more.
func (c *Client) settle(h head, body []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.calls[h.call]
	switch {
	case h.kind != reply && (h.kind != failure || h.code == 0 || h.code > lastCodes) || h.call == 0 || h.call > c.last:
		return fmt.Errorf("%w: kind %d, code %d, call %d", ErrProtocol, h.kind, h.code, h.call)
	case w == nil:
		return nil
	case h.kind == reply:
		w.reply = append(w.reply, body...)
	case h.code == unknown:
		w.err = ErrUnknown
	case h.code == tooMany:
		w.err = ErrTooMany
	default:
		w.err = Error(body)
	}
	delete(c.calls, h.call)
	w.done <- struct{}{}
	return nil
}

// abandon forgets a call whose caller does not wait any more, and tells the server if that knows of it. It
// reports false if the call is over already.
func (c *Client) abandon(id uint64, sent bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls[id] == nil {
		return false
	}
	delete(c.calls, id)
	if sent && c.err == nil {
		go func() { _ = c.send(context.Background(), head{kind: cancel, call: id}, nil) }() // it can't fail
	}
	return true
}

// send writes a frame, and returns when body may be changed. If the frame has no room, which the server may not
// make for long, another goroutine writes a copy of it. It fails with the error of ctx.
func (c *Client) send(ctx context.Context, h head, body []byte) error {
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.conn.Room() >= headBytes+len(body) {
		c.write(h, body)
		return nil
	}
	c.mu.Lock()
	c.stuck = true
	c.mu.Unlock()
	body = bytes.Clone(body)
	go c.keep()
	go c.write(h, body)
	return nil
}

// write writes a frame and gives the place of the writer free.
func (c *Client) write(h head, body []byte) {
	if err := write(c.conn, &c.scratch, h, body); err != nil {
		c.fail(err)
	}
	c.mu.Lock()
	c.stuck = false
	c.mu.Unlock()
	<-c.writing
}

// keep reads while a frame waits for room, and perhaps one frame more: the server may wait to write replies before it
// reads requests, and those who called for these may have gone.
func (c *Client) keep() {
	<-c.reading
	defer func() { c.reading <- struct{}{} }()
	for {
		c.mu.Lock()
		needed := c.stuck && c.err == nil
		c.mu.Unlock()
		if !needed || !c.take() {
			return
		}
	}
}

// fail ends the connection and all calls. Only the first reason counts.
func (c *Client) fail(err error) {
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, vmmc.ErrPeerGone), errors.Is(err, ErrProtocol):
	case errors.Is(err, net.ErrClosed):
		err = ErrClosed // with its node
	default:
		err = fmt.Errorf("%w: %w", vmmc.ErrPeerGone, err)
	}
	c.mu.Lock()
	if c.err == nil {
		c.err = err
		for _, w := range c.calls {
			w.err = err
			w.done <- struct{}{}
		}
		clear(c.calls)
	}
	c.mu.Unlock()
	_ = c.conn.Close() // it fails if it was closed before
}

// Gone is closed when the server is gone, or either end was closed.
func (c *Client) Gone() <-chan struct{} { return c.conn.Gone() }

// Close ends the connection. Calls that wait fail with ErrClosed.
func (c *Client) Close() error {
	c.fail(ErrClosed)
	return nil
}
