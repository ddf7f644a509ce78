package broker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"
)

// maxUnread asks for the least bound of what an exporter may leave unread (SO_SNDBUF, socket(7)): the kernel makes
// about six messages of it. A descriptor that nobody has read counts as one of the user who sent it. If there are more
// than a process of that user may have open (RLIMIT_NOFILE), then it can send no other (ETOOMANYREFS, unix(7)). So
// each client keeps its place here until it has read what it got, and MaxClients times six must stay below that limit.
const maxUnread = 1 // byte

// register serves an exporter as long as it lives. It returns an error only if there is no answer so far.
func (b *broker) register(c *conn, who *unix.Ucred, u *user, m *message) error {
	reserved := func(r rune) bool { return !unicode.IsPrint(r) || r == '/' || r == '@' }
	if m.Name == "" || strings.ContainsFunc(m.Name, reserved) {
		return errors.New("a name that can be printed is needed, without / and @")
	}
	if err := c.SetWriteBuffer(maxUnread); err != nil {
		return err
	}
	k := key{who.Uid, m.Name}
	e := newExporter(c, k, u, int(who.Pid), m)
	c.writing <- struct{}{} // what importers cause comes after the answer
	b.mu.Lock()
	if other := b.exporters[k]; other != nil {
		b.mu.Unlock()
		<-c.writing
		return fmt.Errorf("process %d is %q already", other.pid, k.name)
	}
	b.exporters[k] = e
	if w := b.awaited[k]; w != nil {
		close(w.came)
		delete(b.awaited, k)
	}
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		delete(b.exporters, k)
		b.mu.Unlock()
	}()
	err := c.sendLocked(b.ctx, &message{Kind: connected})
	<-c.writing
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
		_ = c.send(b.ctx, refusal(err))
	}
	hangUp(c)
	<-gone
	return nil
}

// hangUp ends the read of a connection that may have something unread at its other end.
func hangUp(c *conn) { _ = c.SetReadDeadline(time.Unix(1, 0)) } // it fails if c is closed

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
		err = e.send(ctx, &message{Kind: connect, From: &from}, ends[0])
		unix.Close(ends[0])
		if err == nil {
			err = c.send(ctx, &message{Kind: connected}, ends[1])
			unix.Close(ends[1])
			return err
		}
		unix.Close(ends[1])
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, os.ErrDeadlineExceeded): // it may be stopped, and has its name for as long as it lives
		case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET), errors.Is(err, net.ErrClosed):
			hangUp(e.conn) // it reads nothing any more: it may come back as another process
			select {
			case <-e.gone:
			case <-ctx.Done():
				return ctx.Err()
			}
		default: // no fault of the exporter
			return err
		}
	}
}

// find waits for an exporter.
func (b *broker) find(ctx context.Context, k key) (*exporter, error) {
	for {
		b.mu.Lock()
		if e := b.exporters[k]; e != nil {
			b.mu.Unlock()
			return e, nil
		}
		w := b.awaited[k]
		if w == nil {
			w = &awaited{came: make(chan struct{})}
			b.awaited[k] = w
		}
		w.dials++
		b.mu.Unlock()
		select {
		case <-w.came:
			continue
		case <-ctx.Done():
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if w.dials--; w.dials == 0 && b.awaited[k] == w {
			delete(b.awaited, k)
		}
		return nil, ctx.Err()
	}
}
