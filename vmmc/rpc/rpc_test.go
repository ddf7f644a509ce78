package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/vmmc"
	"pinwheel/vmmc/stream"
)

func TestMain(m *testing.M) {
	if address := os.Getenv("RPC_TEST_PEER"); address != "" {
		peerProcess(address)
	}
	goleak.VerifyTestMain(m)
}

const service = 7

var everyone = stream.Options{Peers: vmmc.Permissions{Peers: []string{"client", "server"}}, Ring: 16 << 10}

func socket(t testing.TB) string {
	dir, err := os.MkdirTemp("", "rpc") // those of the test are too long for sun_path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return "unix:" + filepath.Join(dir, "s")
}

// networks are those over which calls go: shared memory, and connections.
var networks = map[string]func(t testing.TB) string{
	"shared": socket,
	"tcp":    func(testing.TB) string { return "tcp:127.0.0.1:0" },
}

func nodeOptions(name, listen string) vmmc.Options {
	return vmmc.Options{
		Name: name, Listen: []string{listen}, Token: "0123456789abcdef0123456789abcdef", Heartbeat: testwait.Limit / 2,
	}
}

func openNode(t testing.TB, name, listen string) *vmmc.Node {
	t.Helper()
	n, err := vmmc.Open(nodeOptions(name, listen))
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
	w.client, w.server = openNode(t, "client", networks[network](t)), openNode(t, "server", networks[network](t))
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

func TestContextEndsTheCallAndItsHandler(t *testing.T) {
	overEach(t, Options{}, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(testContext(t))
		time.AfterFunc(time.Millisecond, cancel)
		if _, err := w.c.Call(ctx, hold, nil, nil); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := testwait.Receive(t, "the end of the handler", w.ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		ctx, cancel = context.WithTimeout(testContext(t), time.Millisecond)
		defer cancel()
		if _, err := w.c.Call(ctx, hold, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := w.c.Call(ctx, null, nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if _, err := w.c.Call(testContext(t), null, nil, nil); err != nil {
			t.Error("the connection did not survive:", err)
		}
	})
}

// running is how many calls have no end yet.
func (w *world) running() int {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	return len(w.c.calls)
}

func TestTooManyCallsAreRefused(t *testing.T) {
	overEach(t, Options{MaxCalls: 2}, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(testContext(t))
		var calls sync.WaitGroup
		var refused atomic.Int32
		for range 5 {
			calls.Go(func() {
				if _, err := w.c.Call(ctx, hold, nil, nil); errors.Is(err, ErrTooMany) {
					refused.Inc()
				} else if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		testwait.Until(t, "three are refused", func() bool { return refused.Load() == 3 })
		cancel()
		calls.Wait()
	})
}

func TestClosedClientEndsItsCalls(t *testing.T) {
	overEach(t, Options{}, func(t *testing.T, w *world) {
		failed := make(chan error, 2)
		for range cap(failed) {
			go func() {
				_, err := w.c.Call(testContext(t), hold, nil, nil)
				failed <- err
			}()
		}
		testwait.Until(t, "both calls wait", func() bool { return w.running() == cap(failed) })
		w.c.Close()
		for range cap(failed) {
			if err := testwait.Receive(t, "the end of a call", failed); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}
		if _, err := w.c.Call(testContext(t), null, nil, nil); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		c := w.dial(t, Options{})
		if _, err := c.Call(testContext(t), null, nil, nil); err != nil {
			t.Error("the server did not survive:", err)
		}
	})
}

func TestClosedServerEndsCallsAndHandlers(t *testing.T) {
	overEach(t, Options{}, func(t *testing.T, w *world) {
		failed := make(chan error, 1)
		go func() {
			_, err := w.c.Call(testContext(t), hold, nil, nil)
			failed <- err
		}()
		testwait.Until(t, "the call waits", func() bool { return w.running() == 1 })
		if err := w.s.Close(); err != nil {
			t.Error(err)
		}
		if err := testwait.Receive(t, "the end of the call", failed); err == nil {
			t.Error("it succeeded")
		}
		if _, err := w.c.Call(testContext(t), null, nil, nil); !errors.Is(err, vmmc.ErrPeerGone) {
			t.Error(err)
		}
	})
}

// peerProcess serves until it is killed.
func peerProcess(address string) {
	n, err := vmmc.Open(nodeOptions("server", address))
	if err != nil {
		panic(err)
	}
	l, err := stream.Listen(n, service, everyone)
	if err != nil {
		panic(err)
	}
	w := &world{s: NewServer(Options{}), ended: make(chan error, 100)}
	w.handle()
	go func() { _ = w.s.Serve(l) }()
	testwait.Ready()
}

func TestKilledServerEndsAllCalls(t *testing.T) {
	testwait.Bound(t)
	address := socket(t)
	_, kill := testwait.Peer(t, "RPC_TEST_PEER="+address)
	n := openNode(t, "client", socket(t))
	c, err := Dial(testContext(t), n, address, service, everyone, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, err := c.Call(testContext(t), echo, []byte("hello"), nil); err != nil || string(got) != "hello" {
		t.Fatal(got, err)
	}
	const many = 10
	failed := make(chan error, many)
	for range many {
		go func() {
			_, err := c.Call(testContext(t), hold, nil, nil)
			failed <- err
		}()
	}
	testwait.Until(t, "all calls wait", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.calls) == many })
	kill()
	for range many {
		if err := testwait.Receive(t, "the end of a call", failed); !errors.Is(err, vmmc.ErrPeerGone) {
			t.Error(err)
		}
	}
}

// Replies that nobody waits for fill the ring of the client, so the server reads no requests: a call must get through
// all the same.
func TestAbandonedRepliesBlockNobody(t *testing.T) {
	overEach(t, Options{}, func(t *testing.T, w *world) {
		size := binary.LittleEndian.AppendUint32(nil, 1<<20)
		for range 3 {
			ctx, cancel := context.WithCancel(testContext(t))
			sent := make(chan struct{})
			go func() {
				testwait.Until(t, "it is called", func() bool { return w.running() == 1 })
				cancel()
				close(sent)
			}()
			_, err := w.c.Call(ctx, noise, size, nil) // it may be quicker than its end
			<-sent
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		big := make([]byte, 100_000)
		if got, err := w.c.Call(testContext(t), echo, big, nil); err != nil || len(got) != len(big) {
			t.Error(len(got), err)
		}
	})
}

// A handler that runs inline and waits, against the rules: its server reads nothing.
func TestServerThatReadsNothingHoldsNoCallLongerThanItsContext(t *testing.T) {
	overEach(t, Options{}, func(t *testing.T, w *world) {
		const stuck = 50
		entered, release := make(chan struct{}), make(chan struct{})
		w.s.Handle(stuck, func(_ context.Context, _, reply []byte) ([]byte, error) {
			close(entered)
			<-release
			return reply, nil
		}, Inline)
		first := make(chan error, 1)
		go func() {
			_, err := w.c.Call(testContext(t), stuck, nil, nil)
			first <- err
		}()
		testwait.Receive(t, "the handler", entered)
		// The first does not fit into the ring, the others wait until it is written.
		for _, size := range []int{1 << 20, 1 << 20, 1} {
			ctx, cancel := context.WithTimeout(testContext(t), 5*time.Millisecond)
			if _, err := w.c.Call(ctx, echo, make([]byte, size), nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d bytes: %v", size, err)
			}
			cancel()
		}
		close(release)
		if err := testwait.Receive(t, "the first call", first); err != nil {
			t.Error(err)
		}
		if got, err := w.c.Call(testContext(t), echo, []byte("x"), nil); err != nil || string(got) != "x" {
			t.Error(got, err)
		}
	})
}

func TestMalformedFramesEndTheConnectionOnly(t *testing.T) {
	overEach(t, Options{MaxBytes: 1000}, func(t *testing.T, w *world) {
		for _, h := range []head{{kind: reply}, {kind: 99}, {kind: request, bytes: 1 << 40}} {
			c := w.dial(t, Options{})
			if _, err := c.conn.Write(h.append(nil)); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Call(testContext(t), null, nil, nil); !errors.Is(err, vmmc.ErrPeerGone) {
				t.Errorf("after %+v: %v", h, err)
			}
		}
		if _, err := w.c.Call(testContext(t), null, nil, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestClientRefusesRepliesThatNobodyAskedFor(t *testing.T) {
	w := begin(t, "shared", Options{})
	for _, h := range []head{{kind: reply, call: 5}, {kind: request, call: 1}, {kind: failure, call: 1}, {kind: failure, code: 9, call: 1}} {
		c := w.dial(t, Options{})
		c.last = 1
		if err := c.settle(h, nil); !errors.Is(err, ErrProtocol) {
			t.Errorf("%+v: %v", h, err)
		}
	}
}

func FuzzFrames(f *testing.F) {
	f.Add((&head{kind: request, call: 1}).append(nil))
	f.Add(append((&head{kind: reply, call: 1, bytes: 3}).append(nil), "abc"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		in := newFrames(bytes.NewReader(b), 1000)
		for read := 0; ; {
			h, body, err := in.next()
			if err != nil {
				return
			}
			read += headBytes + len(body)
			if uint64(len(body)) != h.bytes || len(body) > 1000 || read > len(b) {
				t.Fatalf("%+v with %d bytes", h, len(body))
			}
		}
	})
}

// Calls of many goroutines, some of which end early, over connections that end at any moment.
func TestManyCallsAtATime(t *testing.T) {
	overEach(t, Options{}, func(t *testing.T, w *world) {
		var clients sync.WaitGroup
		for k := range 3 {
			c := w.dial(t, Options{})
			closed := atomic.NewBool(false)
			var callers sync.WaitGroup
			for g := range 6 {
				callers.Go(func() {
					r := rand.New(rand.NewPCG(uint64(k), uint64(g)))
					for n := range 150 {
						if msg := callOnce(t, c, r, closed, fmt.Sprint(k, g, n)); msg != "" {
							t.Error(msg)
							return
						}
					}
				})
			}
			clients.Go(func() {
				if k == 2 { // this one ends in the middle
					time.Sleep(5 * time.Millisecond)
					closed.Store(true)
					c.Close()
				}
				callers.Wait()
			})
		}
		clients.Wait()
		if n := w.running(); n != 0 {
			t.Errorf("%d calls are left", n)
		}
	})
}

// callOnce makes a call of some kind and says what was wrong.
func callOnce(t *testing.T, c *Client, r *rand.Rand, closed *atomic.Bool, name string) string {
	request := bytes.Repeat([]byte(name), 1+r.IntN(2000))
	ctx, cancel := context.WithTimeout(testContext(t), testwait.Limit/2)
	defer cancel()
	early := r.IntN(4) == 0
	if early {
		time.AfterFunc(time.Duration(r.IntN(300))*time.Microsecond, cancel)
	}
	got, err := c.Call(ctx, []uint32{echo, echoWaits}[r.IntN(2)], request, nil)
	switch {
	case err == nil && bytes.Equal(got, request):
	case errors.Is(err, context.Canceled) && early:
	case errors.Is(err, ErrClosed) && closed.Load():
	default:
		return fmt.Sprintf("%s: %d bytes for %d, %v", name, len(got), len(request), err)
	}
	return ""
}

// Whoever sleeps, or wakes another, makes system calls, and a thread of this process switches. The runtime does that
// on its own account only now and then.
func TestNullCallMakesNoSystemCall(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two processors: on one, whoever waits must let the other run")
	}
	w := begin(t, "shared", Options{})
	testwait.Until(t, "twenty calls in a row while no thread sleeps", func() bool {
		before := switches(t)
		for range 20 {
			if _, err := w.c.Call(context.Background(), null, nil, nil); err != nil {
				t.Fatal(err)
			}
		}
		return switches(t) == before
	})
}

// switches is how often threads of this process have slept.
func switches(t *testing.T) int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return u.Nvcsw
}
