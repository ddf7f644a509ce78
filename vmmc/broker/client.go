package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"pinwheel/internal/unixsocket"
)

// Errors of clients.
var (
	// ErrNone says that there is no broker, or that it went away.
	ErrNone = errors.New("broker: there is none")
	// ErrRefused is the broker's own: it says why.
	ErrRefused = errors.New("broker: refused")
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
		err = c.send(request)
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

// Dial asks for a connection to the process of a user that is registered under a name. It waits for that until
// ctx ends. It fails with ErrNone without a broker, and with ErrRefused.
func Dial(ctx context.Context, path string, uid uint32, name string) (*net.UnixConn, error) {
	c, err := open(ctx, path, &message{Kind: dial, UID: uid, Name: name})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_, fd, err := c.answer(ctx)
	if err != nil {
		if fd >= 0 {
			_ = os.NewFile(uintptr(fd), "vmmc").Close()
		}
		return nil, err
	}
	return stream(fd)
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
	c, err := open(ctx, path, &message{Kind: register, Name: e.Name, Users: e.Users})
	if err != nil {
		return nil, err
	}
	if _, _, err := c.answer(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return &Registration{c, e}, nil
}

// Accept returns the next connection of an importer, and its user. It fails when the broker is gone, and after
// Close.
func (r *Registration) Accept() (*net.UnixConn, uint32, error) {
	for {
		m, fd, err := r.conn.receive()
		if err != nil {
			return nil, 0, err
		}
		switch m.Kind {
		case connect:
			c, err := stream(fd)
			return c, m.UID, err
		case describe:
			s := r.of.Stats()
			err = s.tell(r.conn, m.Question)
			if err == nil {
				err = r.conn.send(&message{Kind: done, Question: m.Question, Stats: s.rest()})
			}
			if err != nil {
				return nil, 0, err
			}
		}
	}
}

// Close gives the name back.
func (r *Registration) Close() error { return r.conn.Close() }
