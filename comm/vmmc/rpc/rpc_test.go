package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/stream"
	"pinwheel/internal/testwait"
	"pinwheel/verbs/rdma/rdmatest"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("RPC_TEST_PEER"); address != "" {
		peerProcess(address)
	}
	goleak.VerifyTestMain(m)
}

const service = 7

var everyone = stream.Options{Peers: vmmc.Permissions{Peers: []string{"client", "server"}}, Ring: 16 << 10}

func socket(t testing.TB) string { return "unix:" + filepath.Join(testwait.ShortDir(t), "s") }

// networks are those over which calls go: shared memory, and connections.
var networks = map[string]func(t testing.TB) string{
	"shared": socket,
	"tcp":    func(testing.TB) string { return "tcp:127.0.0.1:0" },
	"rdma": func(t testing.TB) string {
		rdmatest.Need(t)
		return "tcp:127.0.0.1:0"
	},
}

func nodeOptions(name, listen string) vmmc.Options {
	return vmmc.Options{
		Name: name, Listen: []string{listen}, Token: "0123456789abcdef0123456789abcdef", Heartbeat: testwait.Limit / 2,
	}
}

func openNode(t testing.TB, name, network string) *vmmc.Node {
	t.Helper()
	o := nodeOptions(name, networks[network](t))
	o.NoRDMA = network == "tcp"
	n, err := vmmc.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	t.Cleanup(cancel)
	return ctx
}

// Procedures of the tests.
const (
	null = iota
	echo
	echoWaits
	hold // until its context ends
	fails
	panics
	noise // a reply of that many bytes
)

// world is a client and a server in one process.
type world struct {
	s              *Server
	c              *Client
	client, server *vmmc.Node
	ended          chan error // says why hold ended
}

func begin(t testing.TB, network string, o Options) *world {
	t.Helper()
	testwait.Bound(t)
	w := &world{s: NewServer(o), ended: make(chan error, 100)}
	w.client, w.server = openNode(t, "client", network), openNode(t, "server", network)
	l, err := stream.Listen(w.server, service, everyone)
	if err != nil {
		t.Fatal(err)
	}
	w.handle()
	served := make(chan error, 1)
	go func() { served <- w.s.Serve(l) }()
	t.Cleanup(func() {
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
		l.Close() // if the server was closed before it served
		if err := testwait.Receive(t, "the end of Serve", served); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	w.c = w.dial(t, o)
	return w
}

func (w *world) dial(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := Dial(testContext(t), w.client, w.server.Addresses()[0], service, everyone, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func (w *world) handle() {
	same := func(_ context.Context, request, reply []byte) ([]byte, error) { return append(reply, request...), nil }
	w.s.Handle(null, func(_ context.Context, _, reply []byte) ([]byte, error) { return reply, nil }, Inline)
	w.s.Handle(echo, same, Inline)
	w.s.Handle(echoWaits, same, Waits)
	w.s.Handle(hold, func(ctx context.Context, _, reply []byte) ([]byte, error) {
		<-ctx.Done()
		w.ended <- ctx.Err()
		return reply, ctx.Err()
	}, Waits)
	w.s.Handle(fails, func(_ context.Context, request, _ []byte) ([]byte, error) {
		return nil, errors.New("no such " + string(request))
	}, Waits)
	w.s.Handle(panics, func(context.Context, []byte, []byte) ([]byte, error) { panic("oh") }, Inline)
	w.s.Handle(noise, func(_ context.Context, request, reply []byte) ([]byte, error) {
		return append(reply, make([]byte, binary.LittleEndian.Uint32(request))...), nil
	}, Inline)
}

// overEach runs a test over each network.
func overEach(t *testing.T, o Options, f func(*testing.T, *world)) {
	for network := range networks {
		t.Run(network, func(t *testing.T) { f(t, begin(t, network, o)) })
	}
}

func TestReplyIsThatOfTheHandler(t *testing.T) {
	overEach(t, Options{}, func(t *testing.T, w *world) {
		for _, n := range []int{0, 1, joined, joined + 1, 100_000} {
			request := bytes.Repeat([]byte{byte(n)}, n)
			for _, procedure := range []uint32{echo, echoWaits} {
				got, err := w.c.Call(testContext(t), procedure, request, []byte("x"))
				if err != nil || string(got) != "x"+string(request) {
					t.Fatalf("%d bytes: got %d, %v", n, len(got), err)
				}
			}
		}
	})
}

func TestErrorsOfHandlersFailTheirCallsOnly(t *testing.T) {
	overEach(t, Options{MaxBytes: 5000}, func(t *testing.T, w *world) {
		var text Error
		if _, err := w.c.Call(testContext(t), fails, []byte("thing"), nil); !errors.As(err, &text) || text != "no such thing" {
			t.Error(err)
		}
		if _, err := w.c.Call(testContext(t), panics, nil, nil); !errors.As(err, &text) || !strings.Contains(string(text), "oh") {
			t.Error(err)
		}
		if _, err := w.c.Call(testContext(t), 99, nil, nil); !errors.Is(err, ErrUnknown) {
			t.Error(err)
		}
		if _, err := w.c.Call(testContext(t), echo, make([]byte, 5001), nil); !errors.Is(err, ErrTooLong) {
			t.Error(err)
		}
		long := binary.LittleEndian.AppendUint32(nil, 5001)
		if _, err := w.c.Call(testContext(t), noise, long, nil); !errors.As(err, &text) {
			t.Error(err)
		}
		if _, err := w.c.Call(testContext(t), null, nil, nil); err != nil {
			t.Error(err)
		}
	})
}

// running is how many calls have no end yet.
func (w *world) running() int {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return len(w.c.calls)
}

// A server that tells its clients apart has a Server for each.
func TestConnectionWithProceduresOfItsOwn(t *testing.T) {
	for network := range networks {
		t.Run(network, func(t *testing.T) {
			testwait.Bound(t)
			server, client := openNode(t, "server", network), openNode(t, "client", network)
			l, err := stream.Listen(server, service, everyone)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ended := make(chan error)
			for k := range 2 {
				c, err := Dial(testContext(t), client, server.Addresses()[0], service, everyone, Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				conn, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				s := NewServer(Options{})
				defer s.Close()
				s.Handle(1, func(_ context.Context, _, reply []byte) ([]byte, error) {
					return append(reply, byte(k)), nil
				}, Inline)
				go func() { ended <- s.ServeConn(conn.(*stream.Conn)) }()
				if peer := conn.(*stream.Conn).Peer(); peer != "client" {
					t.Errorf("the client is %q", peer)
				}
				if got, err := c.Call(testContext(t), 1, nil, nil); err != nil || got[0] != byte(k) {
					t.Error(got, err)
				}
				if k == 0 {
					c.Close()
				} else {
					s.Close()
				}
				if err := testwait.Receive(t, "the end of the connection", ended); err != nil {
					t.Error(err)
				}
				if _, err := c.Call(testContext(t), 1, nil, nil); err == nil {
					t.Error("the connection is not over")
				}
			}
		})
	}
}
