package files

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"

	"pinwheel/files/internal/wire"
)

// dataListener accepts connections beside those of vmmc: by TCP, for file bytes without encryption, and by a Unix socket,
// for descriptors of files. Each needs a ticket, which the server has given out on the authenticated connection of a
// client, and which lets one in.
type dataListener struct {
	net.Listener

	// mu protects what follows. It is a leaf.
	mu       sync.Mutex
	tickets  map[[wire.TicketLen]byte]*dataConn
	entering map[dataSocket]bool // those that have shown no ticket; nil after Close
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
	d := &dataListener{Listener: l, tickets: map[[wire.TicketLen]byte]*dataConn{}, entering: map[dataSocket]bool{}}
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
		c := a.(dataSocket)
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

// enter looks at the ticket of a connection, and at whose it is if it comes from this machine.
func (d *dataListener) enter(c dataSocket) {
	var ticket [wire.TicketLen]byte
	_ = c.SetReadDeadline(time.Now().Add(enterTime)) // if it fails, so does the Read
	_, err := io.ReadFull(c, ticket[:])
	if local, ok := c.(*net.UnixConn); ok && err == nil {
		_, err = ownPeer(local)
	}
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
	err := d.Listener.Close()
	d.mu.Lock()
	for c := range d.entering {
		c.Close()
	}
	d.entering = nil
	d.mu.Unlock()
	d.tasks.Wait()
	return err
}
