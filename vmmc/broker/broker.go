package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

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
	remotes   int
	ofUser    map[uint32]int
	exporters map[key]*exporter
	tickets   map[string]ticket
	changed   chan struct{} // closed when an exporter came, and made anew
}

// key is a name of a user.
type key struct {
	uid  uint32
	name string
}

// Serve serves clients at a socket of type unixpacket, until ctx ends, which is no error. It closes the listener, and
// that of Options.Remote, whatever it returns.
func Serve(ctx context.Context, l *net.UnixListener, o Options) error {
	o.MaxClients = cmp.Or(o.MaxClients, 4096)
	o.MaxClientsOfUser = cmp.Or(o.MaxClientsOfUser, 1024)
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	ctx, cancel := context.WithCancel(ctx)
	b := &broker{
		opt: o, ctx: ctx, ofUser: map[uint32]int{}, exporters: map[key]*exporter{}, changed: make(chan struct{}),
		tickets: map[string]ticket{},
	}
	defer b.tasks.Wait()
	defer cancel()
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	if r := o.Remote; r != nil && r.Listener != nil {
		defer r.Listener.Close()
		if _, err := r.config(""); err != nil {
			return err
		}
		b.tasks.Go(func() { b.serveRemote(r.Listener) })
	}
	return b.accept(l, func(c net.Conn) { b.client(newConn(c.(*net.UnixConn))) })
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
	if err := b.enter(who.Uid); err != nil {
		b.refuse(c, err)
		return
	}
	defer b.leave(who.Uid)
	m, err := b.request(c)
	if err != nil {
		return
	}
	switch m.Kind {
	case register:
		err = b.register(c, who, &m)
	case dial:
		err = b.dial(c, who, &m)
	case list:
		err = b.list(c, who.Uid)
	default:
		err = fmt.Errorf("no request %q", m.Kind)
	}
	if err != nil {
		_ = c.send(&message{Kind: refused, Reason: err.Error()})
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
		_ = c.send(&message{Kind: refused, Reason: reason.Error()})
	}
	b.mu.Lock()
	b.refusals--
	b.mu.Unlock()
}

// enter counts a client.
func (b *broker) enter(uid uint32) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !b.opt.AllUsers && uid != 0 && int(uid) != os.Geteuid():
		return fmt.Errorf("this broker serves user %d", os.Geteuid())
	case b.clients >= b.opt.MaxClients || b.ofUser[uid] >= b.opt.MaxClientsOfUser:
		return fmt.Errorf("%d clients are connected, %d of user %d", b.clients, b.ofUser[uid], uid)
	}
	b.clients++
	b.ofUser[uid]++
	return nil
}

func (b *broker) leave(uid uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clients--
	if b.ofUser[uid]--; b.ofUser[uid] == 0 {
		delete(b.ofUser, uid)
	}
}

// register serves an exporter as long as it lives. It returns an error only if there is no answer so far.
func (b *broker) register(c *conn, who *unix.Ucred, m *message) error {
	reserved := func(r rune) bool { return !unicode.IsPrint(r) || r == '/' || r == '@' }
	if m.Name == "" || strings.ContainsFunc(m.Name, reserved) {
		return errors.New("a name that can be printed is needed, without / and @")
	}
	k := key{who.Uid, m.Name}
	e := newExporter(c, k, int(who.Pid), m)
	c.writing.Lock() // what importers cause comes after the answer
	b.mu.Lock()
	if other := b.exporters[k]; other != nil {
		b.mu.Unlock()
		c.writing.Unlock()
		return fmt.Errorf("process %d is %q already", other.pid, k.name)
	}
	b.exporters[k] = e
	close(b.changed)
	b.changed = make(chan struct{})
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.exporters, k)
		b.mu.Unlock()
	}()
	err := c.sendLocked(&message{Kind: connected})
	c.writing.Unlock()
	if err != nil {
		close(e.gone)
		return nil
	}
	e.read()
	return nil
}

// dial waits for an exporter, and connects the client to it.
func (b *broker) dial(c *conn, who *unix.Ucred, m *message) error {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var one [1]byte
		_, _ = c.Read(one[:]) // the client says nothing: it has gone away, or this broker ends
		cancel()
	}()
	var err error
	if m.Host != "" {
		err = b.connectRemote(ctx, c, who.Uid, m)
	} else {
		err = b.connect(ctx, c, Origin{UID: who.Uid}, key{m.UID, m.Name})
	}
	if ctx.Err() != nil {
		err = nil // nobody hears of it
	}
	if err != nil {
		_ = c.send(&message{Kind: refused, Reason: err.Error()})
	}
	c.Close()
	<-gone
	return nil
}

func (b *broker) connect(ctx context.Context, c *conn, from Origin, to key) error {
	for {
		e, err := b.find(ctx, to)
		if err != nil {
			return err
		}
		if !e.admits(from) {
			return fmt.Errorf("%q of user %d is not for user %d", to.name, to.uid, from.UID)
		}
		ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return os.NewSyscallError("socketpair", err)
		}
		failed := e.send(&message{Kind: connect, From: &from}, ends[0])
		unix.Close(ends[0])
		if failed != nil { // it reads nothing any more: it may come back as another process
			e.Close()
			unix.Close(ends[1])
			select {
			case <-e.gone:
			case <-ctx.Done():
				return ctx.Err()
			}
			continue
		}
		err = c.send(&message{Kind: connected}, ends[1])
		unix.Close(ends[1])
		return err
	}
}

// find waits for an exporter.
func (b *broker) find(ctx context.Context, k key) (*exporter, error) {
	for {
		b.mu.Lock()
		e, changed := b.exporters[k], b.changed
		b.mu.Unlock()
		if e != nil {
			return e, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// describeTimeout bounds a list: some processes may be stopped.
const describeTimeout = time.Second

// list describes the exporters that a user may see. All are asked at once.
func (b *broker) list(c *conn, uid uint32) error {
	b.mu.Lock()
	var seen []*exporter
	for k, e := range b.exporters {
		if uid == 0 || uid == k.uid {
			seen = append(seen, e)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(seen, func(x, y *exporter) int {
		return cmp.Or(cmp.Compare(x.uid, y.uid), cmp.Compare(x.name, y.name))
	})
	ctx, cancel := context.WithTimeout(b.ctx, describeTimeout)
	defer cancel()
	answers := make([]Process, len(seen))
	var all sync.WaitGroup
	for i, e := range seen {
		all.Go(func() {
			p := Process{Name: e.name, PID: e.pid, UID: e.uid}
			var err error
			if p.Stats, err = e.describe(ctx); err != nil {
				p.Error = "it does not answer"
			}
			answers[i] = p
		})
	}
	all.Wait()
	for i := range answers {
		p := answers[i]
		p.Exports, p.Imports = nil, nil
		err := c.send(&message{Kind: process, Process: &p})
		if err == nil {
			err = answers[i].tell(c, 0)
		}
		if err != nil {
			return nil // the client has gone
		}
	}
	return c.send(&message{Kind: done, Stats: &Stats{}})
}
