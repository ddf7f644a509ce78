package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/internal/unixsocket"
)

// Errors of clients.
var (
	// ErrNone says that there is no broker, or that it went away.
	ErrNone = errors.New("broker: there is none")
	// ErrRefused is the broker's own: it says why.
	ErrRefused = errors.New("broker: refused")
	// ErrLost says that one importer found this process, and that its connection can't be used: most likely this
	// process has no descriptor left. The importer hears of the end of its connection.
	ErrLost = errors.New("broker: the connection of an importer was lost")
)

// open connects to the broker at a path and makes a request.
func open(ctx context.Context, path string, request *message) (*conn, error) {
	var d net.Dialer
	plain, err := d.DialContext(ctx, "unixpacket", path)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w at %s (start one with: pinwheel node): %w", ErrNone, path, err)
	}
	c := newConn(plain.(*net.UnixConn))
	who, err := unixsocket.Peer(c.UnixConn)
	switch {
	case err != nil:
	case who.Uid != 0 && int(who.Uid) != os.Geteuid():
		err = fmt.Errorf("%w: user %d made the socket %s: it must be you or root", ErrRefused, who.Uid, path)
	default:
		err = c.send(ctx, request)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// answer receives the answer to a request, and what may have come with it. The end of ctx ends it, with the
// connection.
func (c *conn) answer(ctx context.Context) (m message, fd int, err error) {
	stop := context.AfterFunc(ctx, func() { c.Close() })
	m, fd, err = c.receive()
	if !stop() {
		err = ctx.Err()
	}
	switch {
	case err == nil && m.Kind == refused:
		err = fmt.Errorf("%w: %s", ErrRefused, m.Reason)
	case err != nil && ctx.Err() == nil && !errors.Is(err, errMessage):
		err = fmt.Errorf("%w any more: %w", ErrNone, err)
	}
	return m, fd, err
}

// Origin is whose process a peer is.
type Origin struct {
	UID  uint32 `json:"uid"`
	Node string `json:"node,omitempty"` // empty: this one
}

// Conn is a connection that a broker made. On one machine it is a Unix socket.
type Conn struct {
	net.Conn
	Peer Origin
	// TLS is for a connection to another node, on which nothing was said so far. It lets in nobody but the peer.
	TLS *tls.Config
}

// Target is the process of a user that is registered under a name.
type Target struct {
	Host string // HOST:PORT of the broker of another node. Empty: this one
	UID  uint32
	Name string
}

// Dial asks for a connection. It waits for the target until ctx ends. It fails with ErrNone without a broker, and
// with ErrRefused.
func Dial(ctx context.Context, path string, t Target) (*Conn, error) {
	c, err := open(ctx, path, &message{Kind: dial, UID: t.UID, Name: t.Name, Host: t.Host})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	m, fd, err := c.answer(ctx)
	switch {
	case err != nil && fd >= 0:
		_ = os.NewFile(uintptr(fd), "vmmc").Close()
		return nil, err
	case err != nil:
		return nil, err
	case t.Host != "":
		return redeemed(ctx, &m)
	}
	s, err := stream(fd)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: s, Peer: Origin{UID: t.UID}}, nil
}

// List returns the registered processes of this user, or of all users to root, sorted by user and name.
func List(ctx context.Context, path string) ([]Process, error) {
	c, err := open(ctx, path, &message{Kind: list})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	all := []Process{}
	for {
		m, _, err := c.answer(ctx)
		if err != nil {
			return nil, err
		}
		switch {
		case m.Kind == done:
			return all, nil
		case m.Kind == process:
			p := *m.Process
			p.Exports, p.Imports = []ExportStats{}, []ImportStats{}
			all = append(all, p)
		case len(all) == 0:
			return nil, fmt.Errorf("%w: %q before a process", errMessage, m.Kind)
		default:
			if _, err := all[len(all)-1].add(&m); err != nil {
				return nil, err
			}
		}
	}
}

// Exporter is what a process registers.
type Exporter struct {
	Name  string
	Users []uint32 // other users who may connect
	Nodes []string // other nodes from which this user and Users may connect, by their names. "*": all
	// Stats describes the process. Accept calls it.
	Stats func() Stats
}

// Registration is a name that a process has, as long as it lives and the broker does.
type Registration struct {
	conn *conn
	of   Exporter
}

// Register takes a name. It fails with ErrRefused if another process of this user has it.
func Register(ctx context.Context, path string, e Exporter) (*Registration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c, err := open(ctx, path, &message{Kind: register, Name: e.Name, Users: e.Users, Nodes: e.Nodes})
	if err != nil {
		return nil, err
	}
	if _, _, err := c.answer(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return &Registration{c, e}, nil
}

// Accept returns the next connection of an importer. With ErrLost it can be called again. With any other error the
// broker is gone, or this Registration was closed.
func (r *Registration) Accept() (*Conn, error) {
	for {
		m, fd, err := r.conn.receive()
		switch {
		case errors.Is(err, errMessage):
			return nil, fmt.Errorf("%w: %w", ErrLost, err)
		case err != nil:
			return nil, err
		case m.Kind == connect:
			c, err := connection(&m, fd)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrLost, err)
			}
			return c, nil
		case fd >= 0:
			unix.Close(fd)
		}
		if m.Kind != describe {
			continue
		}
		ctx := context.Background() // each message has its own bound
		s := r.of.Stats()
		err = s.tell(ctx, r.conn, m.Question)
		if err == nil {
			err = r.conn.send(ctx, &message{Kind: done, Question: m.Question, Stats: s.rest()})
		}
		if err != nil {
			return nil, err
		}
	}
}

func connection(m *message, fd int) (*Conn, error) {
	s, err := stream(fd)
	if err != nil {
		return nil, err
	}
	c := &Conn{Conn: s, Peer: *m.From}
	if c.Peer.Node != "" {
		if c.TLS, err = identity.Token(m.Secret); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// Close gives the name back.
func (r *Registration) Close() error { return r.conn.Close() }
