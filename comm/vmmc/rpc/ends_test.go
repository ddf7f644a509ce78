package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/vmmc"
	"pinwheel/comm/vmmc/stream"
	"pinwheel/internal/testwait"
)

func TestContextEndsTheCallAndItsHandler(t *testing.T) {
	overEach(t, Options{}, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(testContext(t))
		called := make(chan error, 1)
		go func() { _, err := w.c.Call(ctx, hold, nil, nil); called <- err }()
		testwait.Until(t, "the server has the call", func() bool { return w.s.Calls() == 1 })
		cancel()
		if err := testwait.Receive(t, "the end of the call", called); !errors.Is(err, context.Canceled) {
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
	n := openNode(t, "client", "shared")
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
			var over atomic.Bool
			go func() {
				testwait.Until(t, "it is called", func() bool { return w.running() == 1 || over.Load() })
				cancel()
				close(sent)
			}()
			_, err := w.c.Call(ctx, noise, size, nil) // it may be quicker than its end
			over.Store(true)
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
