package rpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

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

// A client that reads nothing does not make the server hold what all its calls answer.
func TestPendingBytesOfAConnectionAreBounded(t *testing.T) {
	overEach(t, Options{MaxBytes: 1 << 20, MaxPendingBytes: 2 << 20}, func(t *testing.T, w *world) {
		const calls, long = 50, 1000
		returned := atomic.NewInt32(0)
		w.s.Handle(long, func(_ context.Context, _, reply []byte) ([]byte, error) {
			defer returned.Inc()
			return append(reply, make([]byte, 1<<20)...), nil
		}, Waits)
		c := w.dial(t, Options{})
		var requests []byte
		for id := range uint64(calls) {
			requests = (&head{kind: request, code: long, call: id + 1}).append(requests)
		}
		if _, err := c.conn.Write(requests); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "all handlers return", func() bool { return returned.Load() == calls })
		if n := w.s.Calls(); n == 0 {
			t.Error("replies that nobody reads belong to no call")
		}
		answered, refused := 0, 0
		for range calls {
			h, body, err := c.in.next()
			switch {
			case err == nil && h.kind == reply && len(body) == 1<<20:
				answered++
			case err == nil && h.kind == failure && h.code == failed && bytes.Contains(body, []byte("no room")):
				refused++
			default:
				t.Fatalf("%+v with %d bytes, %v", h, len(body), err)
			}
		}
		// Two have room. A goroutine that is late may find more.
		if answered < 1 || refused < calls/2 {
			t.Errorf("%d replies, %d refused", answered, refused)
		}

		const holds = long + 1
		entered := atomic.NewInt32(0)
		w.s.Handle(holds, func(ctx context.Context, _, _ []byte) ([]byte, error) {
			entered.Inc()
			<-ctx.Done()
			return nil, ctx.Err()
		}, Waits)
		ctx, cancel := context.WithCancel(testContext(t))
		held := make(chan error, 2)
		for range cap(held) {
			go func() { _, err := w.c.Call(ctx, holds, make([]byte, 1<<20), nil); held <- err }()
		}
		testwait.Until(t, "both requests are there", func() bool { return entered.Load() == 2 })
		if _, err := w.c.Call(testContext(t), echoWaits, make([]byte, 1<<20), nil); !errors.Is(err, ErrTooMany) {
			t.Errorf("beyond the bound: %v", err)
		}
		cancel()
		for range cap(held) {
			if err := testwait.Receive(t, "the end of a call", held); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		testwait.Until(t, "there is room again", func() bool {
			_, err := w.c.Call(testContext(t), echoWaits, make([]byte, 1<<20), nil)
			return err == nil
		})
		testwait.Until(t, "no call is under way", func() bool { return w.s.Calls() == 0 })
	})
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
			closed, made := atomic.NewBool(false), atomic.NewInt32(0)
			var callers sync.WaitGroup
			for g := range 6 {
				callers.Go(func() {
					r := rand.New(rand.NewPCG(uint64(k), uint64(g)))
					for n := range 150 {
						if msg := callOnce(t, c, r, closed, fmt.Sprint(k, g, n)); msg != "" {
							t.Error(msg)
							return
						}
						made.Inc()
					}
				})
			}
			clients.Go(func() {
				if k == 2 { // this one ends in the middle
					testwait.Until(t, "some calls were made", func() bool { return made.Load() >= 100 || t.Failed() })
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
