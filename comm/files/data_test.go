package files

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"pinwheel/comm/files/internal/wire"
	"pinwheel/internal/testwait"
)

func trustedWay(t *testing.T) way {
	for _, w := range ways {
		if w.trusted {
			return w
		}
	}
	t.Fatal("there is none")
	return way{}
}

// shows connects to the data listener of a server with what should be a ticket.
func shows(t *testing.T, c *Client, ticket []byte) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", c.data.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := conn.Write(ticket); err != nil {
		t.Fatal(err)
	}
	return conn
}

// refused tells whether a connection is not let in. Such a one ends; on others nothing comes before a request.
func refused(t *testing.T, conn net.Conn) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(testwait.Limit / 4)); err != nil {
		t.Fatal(err)
	}
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestTicketLetsOneConnectionIn(t *testing.T) {
	w := trustedWay(t).serve(t, ServerOptions{})
	want := random(1 << 20)
	w.write("f", want)
	c := w.client()
	if !refused(t, shows(t, c, random(wire.TicketLen))) {
		t.Error("a guess was let in")
	}
	var ticket wire.Ticket
	if _, err := c.call(testContext(t), wire.ProcTicket, "test", "", &wire.DataConn{}, &ticket); err != nil {
		t.Fatal(err)
	}
	conn := shows(t, c, ticket.Ticket)
	testwait.Until(t, "the ticket is taken", func() bool {
		w.server.data.mu.Lock()
		defer w.server.data.mu.Unlock()
		return len(w.server.data.tickets) == 0
	})
	if !refused(t, shows(t, c, ticket.Ticket)) {
		t.Error("a ticket was used twice")
	}
	// The number of the connection is nothing to another client.
	other := w.client()
	of := open(t, other, "f")
	q := wire.Stream{Handle: of.handle, Len: 10, Conn: ticket.Conn + 1}
	if _, err := other.call(testContext(t), wire.ProcStream, "test", "", &q, &wire.Moved{}); err == nil {
		t.Error("another client's connection was used")
	}
	f := open(t, c, "f")
	q = wire.Stream{Handle: f.handle, Len: 10, Conn: ticket.Conn}
	if _, err := c.call(testContext(t), wire.ProcStream, "test", "", &q, &wire.Moved{}); err != nil {
		t.Error(err)
	}
	got := make([]byte, 10)
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, want[:10]) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestNoTicketWithoutTrustOfBoth(t *testing.T) {
	tr := trustedWay(t)
	w := tr.serve(t, ServerOptions{})
	c := w.client(func(o *ClientOptions) { o.TrustedNetwork = false })
	if c.Transport() != ByTLS {
		t.Error(c.Transport())
	}
	_, err := c.call(testContext(t), wire.ProcTicket, "test", "", &wire.DataConn{}, &wire.Ticket{})
	if !errors.Is(err, syscall.EACCES) {
		t.Error(err)
	}
	tr.trusted = false
	w = tr.serve(t, ServerOptions{})
	c = w.client(func(o *ClientOptions) { o.TrustedNetwork = true })
	if c.Transport() != ByTLS {
		t.Error(c.Transport())
	}
}

func TestStrangersDoNotCrowdTheDataListener(t *testing.T) {
	w := trustedWay(t).serve(t, ServerOptions{})
	w.write("f", random(1<<20))
	c := w.client()
	for range maxEntering + 10 {
		conn, err := net.Dial("tcp", c.data.address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	if _, err := open(t, c, "f").CopyRange(testContext(t), io.Discard, 0, 1<<20); err != nil {
		t.Errorf("a client beside them: %v", err)
	}
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	w := trustedWay(t).serve(t, ServerOptions{})
	w.write("f", random(1<<20))
	c := w.client()
	f := open(t, c, "f")
	before := c.Stats().Requests
	for range 5 {
		if _, err := f.CopyRange(testContext(t), io.Discard, 0, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.Stats().Requests - before; n != 6 { // one of them for a ticket
		t.Errorf("%d requests", n)
	}
	if st := w.server.Stats(); st.BytesSendfile != 5<<20 {
		t.Errorf("%+v", st)
	}
}
