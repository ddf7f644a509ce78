package stream

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"pinwheel/comm/vmmc"
)

// Addr is the address of an end of a connection.
type Addr struct {
	Node    string // address, or name, of the node
	Service uint32 // of the listener; 0 for the end that dialled
}

// Network returns "vmmc".
func (a Addr) Network() string { return "vmmc" }

func (a Addr) String() string {
	if a.Service == 0 {
		return a.Node
	}
	return fmt.Sprintf("%s/%d", a.Node, a.Service)
}

// States of a peer, as it says in the inbox.
const (
	writeClosed = 1 // all that it wrote is in the ring
	closed      = 2 // it does not read either
)

// Conn is a byte stream: a net.Conn with CloseWrite. All methods are safe for concurrent use.
type Conn struct {
	node          *vmmc.Node
	id            uint32 // of the export
	in            *inbox
	export        *vmmc.Export
	to            *vmmc.Import // the inbox of the peer; set before the Conn is given to anybody
	local, remote Addr
	peer          string        // the client's name, if a listener accepted the connection
	linger        time.Duration // that Close waits at most until the peer has heard of it

	// Each has room for one: a call should look again.
	readable, writable chan struct{}
	// answered is closed when the peer has answered: a listener with the number of its inbox, and the end
	// that dialled with another word when it has that inbox.
	answered chan struct{}

	// mu lets the memory be freed. It also protects to, local and remote until the Conn is given to somebody: the
	// node may close it before. It is a leaf.
	mu       sync.Mutex
	freed    bool
	heard    bool   // answered is closed
	accepted bool   // by a listener: the peer must get this inbox before it can read
	released func() // hears of the end; may be nil
	forget   func() // the node does not close this connection any more; nil if it does already

	readDeadline, writeDeadline deadline
	closing                     sync.Once
	closed                      chan struct{}
	told                        chan struct{} // closed when the peer has heard of the end, or can't

	// reading is held by the Read that takes bytes. It protects what follows.
	reading  sync.Mutex
	taken    uint64 // bytes, ever
	reported uint64 // of these, those that the peer knows of
	headWord [8]byte
	reader   spinner

	// writing is held by the Write that puts bytes. It protects what follows.
	writing  sync.Mutex
	put      uint64 // bytes, ever
	over     bool   // after CloseWrite
	tailWord [8]byte
	writer   spinner
}

// notified hears that the peer has sent something. It may be called after the end of the export.
func (c *Conn) notified(vmmc.Notification) {
	c.mu.Lock()
	if !c.freed && !c.heard && c.in.answer.Load() != 0 {
		c.heard = true
		close(c.answered)
	}
	c.mu.Unlock()
	c.stir()
}

func (c *Conn) stir() {
	for _, w := range []chan struct{}{c.readable, c.writable} {
		select {
		case w <- struct{}{}:
		default:
		}
	}
}

// tell stores a word in the inbox of the peer, after all that was sent before.
func (c *Conn) tell(at, v uint64) (*vmmc.Op, error) {
	return c.to.SendAsync(binary.NativeEndian.AppendUint64(nil, v), at, vmmc.SendOptions{Notify: true})
}

// say is tell that waits while too many messages to the node of the peer wait.
func (c *Conn) say(ctx context.Context, at, v uint64) (*vmmc.Op, error) {
	for {
		op, err := c.tell(at, v)
		if !errors.Is(err, vmmc.ErrTooManyOps) {
			return op, err
		}
		select {
		case <-time.After(crowded):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// crowded is the pause after vmmc.ErrTooManyOps: nothing tells when fewer messages wait.
const crowded = time.Millisecond

// Gone is closed when nothing can be written any more, as the peer is gone or either end was closed. What the peer
// wrote before can still be read.
func (c *Conn) Gone() <-chan struct{} { return c.to.Done() }

// Read reads what the peer wrote. After the last byte, io.EOF says that the peer has closed its side, and
// any other error that it is gone.
func (c *Conn) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	n, err := c.read(b)
	if err != nil && err != io.EOF {
		err = c.opError("read", err)
	}
	return n, err
}

func (c *Conn) read(b []byte) (int, error) {
	for {
		if err := c.usable(&c.readDeadline); err != nil || len(b) == 0 {
			return 0, err
		}
		gone := c.to.Err()         // before the state: a peer that closes says so first
		state := c.in.state.Load() // before the tail, which does not move any more if this says so
		tail := c.in.tail.Load()
		ahead := tail - c.taken
		switch {
		case ahead > uint64(len(c.in.ring)):
			return 0, fmt.Errorf("stream: the peer claims to have put %d bytes into a ring of %d", ahead, len(c.in.ring))
		case ahead > 0:
			n := copy(b[:min(uint64(len(b)), ahead)], c.in.ring[c.taken%uint64(len(c.in.ring)):])
			c.taken += uint64(n)
			c.report()
			return n, nil
		case state >= writeClosed:
			return 0, io.EOF
		case gone != nil:
			return 0, gone
		}
		if !c.report() {
			wait(c, time.After(crowded), &c.readDeadline)
			continue
		}
		c.await(c.readable, &c.readDeadline, &c.reader, view{c.in.tail, tail, c.in.state, state})
	}
}

// report tells the peer, now and then, how much room there is. It is false if that must be tried again: the
// peer may wait for it.
func (c *Conn) report() bool {
	if c.taken-c.reported < uint64(len(c.in.ring))/4 {
		return true
	}
	err := c.publish(headAt, c.taken, &c.headWord)
	if err == nil {
		c.reported = c.taken
	}
	return !errors.Is(err, vmmc.ErrTooManyOps) // else Read finds the peer gone
}

// Write returns when the peer has room for all of b, and it has been sent. If the peer has closed the
// connection it fails with EPIPE.
func (c *Conn) Write(b []byte) (int, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err := c.write(b)
	if err != nil {
		err = c.opError("write", err)
	}
	return n, err
}

func (c *Conn) write(b []byte) (done int, err error) {
	ring := c.to.Bytes() - ringAt
	for {
		if err := c.usable(&c.writeDeadline); err != nil {
			return done, err
		}
		state := c.in.state.Load()
		switch {
		case c.over || state >= closed || errors.Is(c.to.Err(), vmmc.ErrUnexported):
			return done, syscall.EPIPE
		case c.to.Err() != nil:
			return done, c.to.Err()
		case len(b) == 0:
			return done, nil
		}
		head := c.in.head.Load()
		full := c.put - head
		if full > ring {
			return done, fmt.Errorf("stream: the peer claims to have read what was not written: %d bytes left", int64(full))
		}
		if full == ring {
			c.await(c.writable, &c.writeDeadline, &c.writer, view{c.in.head, head, c.in.state, state})
			continue
		}
		// Not much at a time: the peer reads the first part while the next one is sent.
		at := c.put % ring
		n := min(uint64(len(b)), ring-full, ring-at, max(ring/4, minRing/4))
		if err := c.send(b[:n], ringAt+at); err != nil {
			return done, err
		}
		c.put += n
		if b, done = b[n:], done+int(n); len(b) == 0 {
			return done, nil // the peer may have read it, and closed
		}
	}
}

// send puts bytes into the ring of the peer and publishes them.
func (c *Conn) send(b []byte, at uint64) error {
	for {
		err := c.to.Send(context.Background(), b, at, vmmc.SendOptions{})
		if err == nil {
			err = c.publish(tailAt, c.put+uint64(len(b)), &c.tailWord)
		}
		if !errors.Is(err, vmmc.ErrTooManyOps) {
			return c.ended(err)
		}
		wait(c, time.After(crowded), &c.writeDeadline)
		if err := c.usable(&c.writeDeadline); err != nil {
			return err
		}
	}
}

// ended makes the error of a Write of that of a Send.
func (c *Conn) ended(err error) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	default:
	}
	if errors.Is(err, vmmc.ErrUnexported) {
		return syscall.EPIPE
	}
	return err
}

// usable tells why a call must not go on.
func (c *Conn) usable(d *deadline) error {
	select {
	case <-c.closed:
		return net.ErrClosed
	default:
	}
	if d.passed() {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// wait waits until there may be news.
func wait[T any](c *Conn, news <-chan T, d *deadline) {
	select {
	case <-news:
	case <-d.wait():
	case <-c.closed:
	case <-c.to.Done():
	}
}

func (c *Conn) opError(op string, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &net.OpError{Op: op, Net: "vmmc", Source: c.local, Addr: c.remote, Err: err}
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the other end.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// Peer returns the name that vmmc knows the other end by, as in vmmc.Permissions, if a Listener accepted the
// connection; else it is empty.
func (c *Conn) Peer() string { return c.peer }
