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

	"pinwheel/internal/testwait"
	"pinwheel/vmmc"
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
