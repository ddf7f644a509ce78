package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/files/internal/wire"
)

// dataListener accepts TCP connections for file bytes without encryption. Each needs a ticket, which the server has
// given out on the authenticated connection of a client, and which lets one in.
type dataListener struct {
	*net.TCPListener

	// mu protects what follows. It is a leaf.
	mu       sync.Mutex
	tickets  map[[wire.TicketLen]byte]*dataConn
	entering map[*net.TCPConn]bool // those that have shown no ticket; nil after Close
	tasks    sync.WaitGroup
}

const (
	ticketTime  = 10 * time.Second // after which a ticket is worth nothing
	enterTime   = 3 * time.Second  // within which a connection must show one
	maxEntering = 64
	// stallTime is how long a client may take nothing.
	stallTime = 30 * time.Second
)

// newDataListener listens at an address, or at the host of the first TCP address of a node.
func newDataListener(addresses []string, at string) (*dataListener, error) {
	for _, a := range addresses {
		a, tcp := strings.CutPrefix(a, "tcp:")
		if host, _, err := net.SplitHostPort(a); tcp && err == nil && at == "" {
			at = net.JoinHostPort(host, "0")
		}
	}
	if at == "" {
		return nil, nil // all clients are on this machine, and share memory
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, fmt.Errorf("files: data connections: %w", err)
	}
	d := &dataListener{TCPListener: l.(*net.TCPListener), tickets: map[[wire.TicketLen]byte]*dataConn{},
		entering: map[*net.TCPConn]bool{}}
	d.tasks.Go(d.accept)
	return d, nil
}

func (d *dataListener) port() uint32 { return uint32(d.Addr().(*net.TCPAddr).Port) }

// accept lets connections in until the listener is closed.
func (d *dataListener) accept() {
	for {
		c, err := d.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // most likely no descriptor is left
			continue
		}
		d.mu.Lock()
		if d.entering == nil || len(d.entering) >= maxEntering {
			c.Close()
		} else {
			d.entering[c] = true
			d.tasks.Go(func() { d.enter(c) })
		}
		d.mu.Unlock()
	}
}

// enter looks at the ticket of a connection.
func (d *dataListener) enter(c *net.TCPConn) {
	var ticket [wire.TicketLen]byte
	_ = c.SetReadDeadline(time.Now().Add(enterTime)) // if it fails, so does the Read
	_, err := io.ReadFull(c, ticket[:])
	d.mu.Lock()
	delete(d.entering, c)
	to := d.tickets[ticket]
	if err == nil {
		delete(d.tickets, ticket)
	}
	d.mu.Unlock()
	if err != nil || to == nil {
		c.Close()
		return
	}
	to.arrived(c)
}

// Close ends the listener, and waits for what it has begun.
func (d *dataListener) Close() error {
	err := d.TCPListener.Close()
	d.mu.Lock()
	for c := range d.entering {
		c.Close()
	}
	d.entering = nil
	d.mu.Unlock()
	d.tasks.Wait()
	return err
}

// dataConn is a connection that a client was given a ticket for. It is for one transfer at a time.
type dataConn struct {
	of     *dataListener
	ticket [wire.TicketLen]byte
	expiry *time.Timer
	came   chan struct{} // closed when it has come, or never will
	using  sync.Mutex

	// mu protects what follows. It is a leaf.
	mu   sync.Mutex
	conn *net.TCPConn // nil: it has not come, or was closed
	over bool         // it has come, or never will
}

func (c *dataConn) arrived(t *net.TCPConn) {
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
func (c *dataConn) await(ctx context.Context) (*net.TCPConn, error) {
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

// ticket gives out a ticket.
func (v *session) ticket(context.Context, *wire.Empty) (wire.Message, error) {
	if !v.trusted.Load() {
		return nil, fmt.Errorf("%w: no connection without encryption", syscall.EACCES)
	}
	c := &dataConn{of: v.data, came: make(chan struct{})}
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
	v.data.mu.Lock()
	v.data.tickets[c.ticket] = c
	v.data.mu.Unlock()
	return &wire.Ticket{Conn: h, Ticket: c.ticket[:]}, nil
}

// stream sends a range of a file through a data connection. If it can't send all, it closes that.
func (v *session) stream(ctx context.Context, q *wire.Stream) (wire.Message, error) {
	c, err := find[*dataConn](&v.handles, q.Conn)
	if err != nil {
		return nil, err
	}
	c.using.Lock()
	defer c.using.Unlock()
	conn, err := c.await(ctx)
	if err != nil {
		return nil, err
	}
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
	ctx context.Context, to *net.TCPConn, f *served, off, n int64, sent func(n int),
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
func sendfile(to *net.TCPConn, f *os.File, off, n int64) (sent int, err error) {
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
