//go:build linux && cgo

package rc_test

import (
	"context"
	"net"
	"os"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/rc"
	"pinwheel/verbs/rdma/rdmatest"
	"pinwheel/verbs/verbstest"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(victimEnv); addr != "" {
		victim(addr)
	}
	os.Exit(m.Run())
}

// both are the rights of a region that the tests move data into and out of.
const both = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead

// end is one side of a connection with its own device and domain.
type end struct {
	*rc.Conn
	p *rdma.Provider
}

// pair connects two ends in this process. They are closed when the test ends.
func pair(t testing.TB) (a, b end) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	pa, pb := rdmatest.Open(t), rdmatest.Open(t)
	accepted := make(chan *rc.Conn)
	go func() {
		defer close(accepted)
		sock, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		accepted <- connect(t, sock, pb)
	}()
	sock, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, b = end{connect(t, sock, pa), pa}, end{<-accepted, pb}
	if a.Conn == nil || b.Conn == nil {
		t.FailNow()
	}
	return a, b
}

// connect returns nil, after an error, if it fails.
func connect(t testing.TB, sock net.Conn, p *rdma.Provider) *rc.Conn {
	c, err := rc.Connect(patience(t), sock, p, rc.Options{})
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing the connection: %v", err)
		}
	})
	return c
}

// patience is a context that ends long after a test that works.
func patience(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit)
	t.Cleanup(cancel)
	return ctx
}

// await returns the next completion.
func await(t testing.TB, c *rc.Conn) rc.Completion {
	t.Helper()
	var got [1]rc.Completion
	if n, err := c.Wait(patience(t), got[:]); n != 1 || err != nil {
		t.Fatalf("Wait = %d, %v", n, err)
	}
	return got[0]
}

// must posts a request and requires its success.
func must(t testing.TB, c *rc.Conn, posted error) rc.Completion {
	t.Helper()
	if posted != nil {
		t.Fatal(posted)
	}
	done := await(t, c)
	if err := done.Err(); err != nil {
		t.Fatal(err)
	}
	return done
}

// buffer is registered memory.
type buffer struct {
	b []byte
	g verbs.Region
}

// newBuffer maps and registers n bytes, whose content is unlike any other buffer's.
func newBuffer(t testing.TB, p verbs.Provider, n uint64) buffer {
	t.Helper()
	b, r := verbstest.Map(t, n)
	fill(b, uint64(r.Start))
	g, err := p.Register(r, both)
	if err != nil {
		t.Fatal(err)
	}
	return buffer{b, g}
}

func (b buffer) local() rc.Local   { return rc.Local{Range: mem.RangeOf(b.b), LKey: b.g.LKey} }
func (b buffer) remote() rc.Remote { return rc.Remote{Addr: uint64(b.g.Range.Start), RKey: b.g.RKey} }

// part returns the n bytes of r from offset on.
func part(r mem.Range, offset, n uint64) mem.Range {
	start := r.Start + mem.Addr(offset)
	return mem.Range{Start: start, End: start + mem.Addr(n)}
}
