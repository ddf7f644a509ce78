package files

import (
	"io"
	"net"
	"strings"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

// silencer is a way from a server to a client that lets nothing back, once it is told so: all that the server sends
// arrives, and nothing is acknowledged.
type silencer struct {
	net.Listener
	to       string
	silent   atomic.Bool
	sent     atomic.Int64  // bytes to the client
	released chan struct{} // closed: what was held back goes on
}

// silencerOf returns one that leads to a node, until the test ends.
func silencerOf(t *testing.T, n *vmmc.Node) *silencer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &silencer{Listener: l, to: strings.TrimPrefix(n.Addresses()[0], "tcp:"), released: make(chan struct{})}
	t.Cleanup(func() { l.Close() })
	go s.serve()
	return s
}

func (s *silencer) serve() {
	for {
		server, err := s.Accept()
		if err != nil {
			return
		}
		client, err := net.Dial("tcp", s.to)
		if err != nil {
			server.Close()
			continue
		}
		go s.carry(client, server, func(n int) { s.sent.Add(int64(n)) })
		go s.carry(server, client, func(int) {
			if s.silent.Load() {
				<-s.released
			}
		})
	}
}

func (s *silencer) carry(to, from net.Conn, before func(n int)) {
	defer to.Close()
	defer from.Close()
	for b := make([]byte, 64<<10); ; {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		before(n)
		if _, err := to.Write(b[:n]); err != nil {
			return
		}
	}
}

// A client that acknowledges nothing takes its own time: no other client waits for it, nor does the end of the server.
func TestClientThatAcknowledgesNothing(t *testing.T) {
	tls := ways[1]
	patient := tls.node
	tls.node = func(t testing.TB, name string) vmmc.Options {
		o := withWarn(patient(t, name))
		o.Heartbeat = 4 * testwait.Limit // a hostile client would send its pings
		return o
	}
	w := tls.serve(t, ServerOptions{BudgetBytes: 1 << 20})
	w.sparse("f", much)
	n := openNode(t, tls.node(t, "client"))
	s := silencerOf(t, n)
	deaf := w.clientOf(n, func(o *ClientOptions) { o.Address = "tcp:" + s.Addr().String() })
	f := open(t, deaf, "f")
	s.silent.Store(true)
	before := s.sent.Load()
	ended := make(chan error, 1)
	go func() {
		_, err := f.CopyRange(testContext(t), io.Discard, 0, much)
		ended <- err
	}()
	testwait.Until(t, "the server has sent all that it sends", func() bool { return s.sent.Load()-before > 1<<20 })
	if n, err := open(t, w.client(), "f").CopyRange(testContext(t), io.Discard, 0, 8<<20); n != 8<<20 || err != nil {
		t.Errorf("another client: %d bytes, %v", n, err)
	}
	closed := make(chan error, 1)
	go func() { closed <- w.server.Close() }()
	if err := testwait.Receive(t, "the end of the server", closed); err != nil {
		t.Error(err)
	}
	close(s.released)
	if err := testwait.Receive(t, "the end of the read", ended); err == nil {
		t.Error("a read of a server that was closed has succeeded")
	}
}
