package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/identity"
	"pinwheel/internal/unixsocket"
)

// Options configure a broker.
type Options struct {
	// AllUsers lets clients of other users in. Else the broker is for its own user, and root.
	AllUsers bool
	// MaxClients is how many clients may be connected at a time, MaxClientsOfUser how many of one user. 0 stands
	// for 4096 and 1024. Importers are clients only until they have their connection.
	MaxClients, MaxClientsOfUser int
	// Remote lets processes of other nodes in, and those of this one out. nil: neither.
	Remote *Remote
	// Warn gets a line for what nobody else hears of. nil: it is lost.
	Warn func(message string)
}

// broker is what the clients of Serve share.
type broker struct {
	opt Options
	ctx context.Context
	// tasks are goroutines. None begins after all have ended.
	tasks sync.WaitGroup

	// mu protects what follows.
	mu        sync.Mutex
	clients   int
	refusals  int
	users     map[uint32]*user // those that have clients
	exporters map[key]*exporter
	awaited   map[key]*awaited // those that are not there

	strangers identity.Strangers // of other nodes
	guests    guests
}

// user is what the clients of one user share.
type user struct {
	clients int          // broker.mu protects it
	told    atomic.Int64 // bytes of descriptions that lists hold: see maxTold
}

// awaited is an exporter that dials wait for.
type awaited struct {
	came  chan struct{} // closed then
	dials int           // broker.mu protects it
}

// key is a name of a user.
type key struct {
	uid  uint32
	name string
}

// Serve serves clients at a socket of type unixpacket, until ctx ends, which is no error. It closes the listener, and
// that of Options.Remote, whatever it returns.
func Serve(ctx context.Context, l net.Listener, o Options) error {
	o.MaxClients = cmp.Or(o.MaxClients, 4096)
	o.MaxClientsOfUser = cmp.Or(o.MaxClientsOfUser, 1024)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	b := newBroker(ctx, o)
	defer b.tasks.Wait()
	defer cancel()
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	if r := o.Remote; r != nil && r.Listener != nil {
		defer r.Listener.Close()
		config, err := r.config("")
		if err != nil {
			return err
		}
		b.tasks.Go(func() { _ = b.accept(r.Listener, func(c net.Conn) { b.remote(c, config) }) })
	}
	return b.accept(l, func(c net.Conn) { b.client(newConn(c.(*net.UnixConn))) })
}

func newBroker(ctx context.Context, o Options) *broker {
	return &broker{
		opt: o, ctx: ctx, users: map[uint32]*user{}, exporters: map[key]*exporter{}, awaited: map[key]*awaited{},
		guests: guests{of: map[Origin]int{}, tickets: map[string]ticket{}},
	}
}

// accept serves those who connect until the broker ends, which is no error, or the listener is closed.
func (b *broker) accept(l net.Listener, serve func(net.Conn)) error {
	failing := false
	for {
		c, err := l.Accept()
		if err == nil {
			failing = false
			b.tasks.Go(func() { serve(c) })
			continue
		}
		if b.ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if !failing {
			b.opt.Warn(err.Error())
		}
		failing = true
		select {
		case <-b.ctx.Done():
		case <-time.After(100 * time.Millisecond): // most likely no descriptor is left
		}
	}
}

// client serves one client until it has its answer, or goes away.
func (b *broker) client(c *conn) {
	defer c.Close()
	stop := context.AfterFunc(b.ctx, func() { c.Close() })
	defer stop()
	who, err := unixsocket.Peer(c.UnixConn)
	if err != nil {
		b.opt.Warn(err.Error())
		return
	}
	u, err := b.enter(who.Uid)
	if err != nil {
		b.refuse(c, err)
		return
	}
	defer b.leave(who.Uid)
	defer c.end(b.ctx) // it is our client for as long as it holds back what counts as ours
	m, err := b.request(c)
	if err != nil {
		return
	}
	switch m.Kind {
	case register:
		err = b.register(c, who, u, &m)
	case dial:
		err = b.dial(c, who, &m)
	case list:
		err = b.list(c, who.Uid)
	default:
		err = fmt.Errorf("no request %q", m.Kind)
	}
	if err != nil {
		_ = c.send(b.ctx, refusal(err))
	}
}

// request receives the request of a client, who should make it at once.
func (b *broker) request(c *conn) (m message, err error) {
	if err := c.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return m, err
	}
	m, fd, err := c.receive()
	if fd >= 0 {
		unix.Close(fd)
	}
	return m, errors.Join(err, c.SetReadDeadline(time.Time{}))
}

// maxRefusals is how many clients may be told at a time that there is no room for them.
const maxRefusals = 64

// refuse tells a client that it can't stay. It reads the request first: to close a connection with something
// unread would take the answer back.
func (b *broker) refuse(c *conn, reason error) {
	b.mu.Lock()
	full := b.refusals >= maxRefusals
	if !full {
		b.refusals++
	}
	b.mu.Unlock()
	if full {
		return
	}
	if _, err := b.request(c); err == nil {
		_ = c.send(b.ctx, refusal(reason))
	}
	b.mu.Lock()
	b.refusals--
	b.mu.Unlock()
}

// enter counts a client.
func (b *broker) enter(uid uint32) (*user, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.users[uid]
	if u == nil {
		u = new(user)
	}
	switch {
	case !b.opt.AllUsers && uid != 0 && int(uid) != os.Geteuid():
		return nil, fmt.Errorf("this broker serves user %d", os.Geteuid())
	case b.clients >= b.opt.MaxClients || u.clients >= b.opt.MaxClientsOfUser:
		return nil, fmt.Errorf("%d clients are connected, %d of user %d", b.clients, u.clients, uid)
	}
	b.clients++
	u.clients++
	b.users[uid] = u
	return u, nil
}

func (b *broker) leave(uid uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clients--
	if b.users[uid].clients--; b.users[uid].clients == 0 {
		delete(b.users, uid)
	}
}
