package files

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"pinwheel/comm/files/internal/wire"
)

// dataListener accepts connections beside those of vmmc: by TCP, for file bytes without encryption, and by a Unix socket,
// for descriptors of files. Each needs a ticket, which the server has given out on the authenticated connection of a
// client, and which lets one in.
type dataListener struct {
	net.Listener

	// mu protects what follows. It is a leaf.
	mu       sync.Mutex
	tickets  map[[wire.TicketLen]byte]*dataConn
	entering []dataSocket // those that have shown no ticket, the oldest first
	closed   bool
	tasks    sync.WaitGroup
}

// dataSocket is a *net.TCPConn or a *net.UnixConn.
type dataSocket interface {
	net.Conn
	syscall.Conn
}

const (
	ticketTime  = 10 * time.Second // after which a ticket is worth nothing
	enterTime   = 3 * time.Second  // within which a connection must show one
	maxEntering = 64
	// stallTime is how long a client may take nothing.
	stallTime = 30 * time.Second
)

// listenSendfile listens for TCP connections at an address, or at the host of the first TCP address of a node.
func listenSendfile(addresses []string, at string) (*dataListener, error) {
	for _, a := range addresses {
		a, tcp := strings.CutPrefix(a, "tcp:")
		if host, _, err := net.SplitHostPort(a); tcp && err == nil && at == "" {
			at = net.JoinHostPort(host, "0")
		}
	}
	if at == "" {
		return nil, nil // all clients are on this machine, and share memory
	}
	return listenData("tcp", at)
}

func listenData(network, at string) (*dataListener, error) {
	l, err := net.Listen(network, at)
	if err != nil {
		return nil, fmt.Errorf("files: data connections: %w", err)
	}
	d := &dataListener{Listener: l, tickets: map[[wire.TicketLen]byte]*dataConn{}}
	d.tasks.Go(d.accept)
	return d, nil
}

func (d *dataListener) port() uint32 { return uint32(d.Addr().(*net.TCPAddr).Port) }

// accept lets connections in until the listener is closed.
func (d *dataListener) accept() {
	for {
		a, err := d.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(100 * time.Millisecond) // most likely no descriptor is left
			continue
		}
		d.begin(a.(dataSocket))
	}
}

// begin has a connection show its ticket. A client does so at once. If there are too many that wait, the oldest goes:
// strangers who connect and say nothing keep nobody out. Other users of this machine have no business here.
func (d *dataListener) begin(c dataSocket) {
	if local, ok := c.(*net.UnixConn); ok {
		if _, err := ownPeer(local); err != nil {
			c.Close()
			return
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		c.Close()
		return
	}
	if len(d.entering) >= maxEntering {
		d.entering[0].Close()
		d.entering = slices.Delete(d.entering, 0, 1)
	}
	d.entering = append(d.entering, c)
	d.tasks.Go(func() { d.enter(c) })
}

// enter looks at the ticket of a connection.
func (d *dataListener) enter(c dataSocket) {
	var ticket [wire.TicketLen]byte
	_ = c.SetReadDeadline(time.Now().Add(enterTime)) // if it fails, so does the Read
	_, err := io.ReadFull(c, ticket[:])
	d.mu.Lock()
	d.entering = slices.DeleteFunc(d.entering, func(o dataSocket) bool { return o == c })
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
	err := d.Listener.Close()
	d.mu.Lock()
	d.closed = true
	for _, c := range d.entering {
		c.Close()
	}
	d.mu.Unlock()
	d.tasks.Wait()
	return err
}
