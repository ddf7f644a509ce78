//go:build linux && cgo

package rc_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma/rc"
)

func TestWriteReadAndSendMoveTheBytes(t *testing.T) {
	a, b := pair(t)
	const n = 300_000 // many packets, and an odd last one
	for _, c := range []struct {
		name string
		move func(t *testing.T, here, there buffer)
		back bool // data moves from there to here
	}{
		{name: "write", move: func(t *testing.T, here, there buffer) {
			must(t, a.Conn, a.Write(1, here.local(), there.remote()))
		}},
		{name: "read", back: true, move: func(t *testing.T, here, there buffer) {
			must(t, a.Conn, a.Read(2, here.local(), there.remote()))
		}},
		{name: "send", move: func(t *testing.T, here, there buffer) {
			if err := b.Receive(3, there.local()); err != nil {
				t.Fatal(err)
			}
			must(t, a.Conn, a.Send(4, here.local()))
			if got := must(t, b.Conn, nil); got.ID != 3 || got.Bytes != n {
				t.Errorf("received %+v, want request 3 of %d bytes", got, n)
			}
		}},
		{name: "send to a receiver that is not ready yet", move: func(t *testing.T, here, there buffer) {
			if err := a.Send(5, here.local()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // long enough for the first try to fail
			must(t, b.Conn, b.Receive(6, there.local()))
			must(t, a.Conn, nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			here, there := newBuffer(t, a.p, n), newBuffer(t, b.p, n)
			from, to := here, there
			if c.back {
				from, to = there, here
			}
			want := bytes.Clone(from.b)
			if bytes.Equal(want, to.b) {
				t.Fatal("both buffers are equal before the transfer")
			}
			c.move(t, here, there)
			if !bytes.Equal(from.b, want) || !bytes.Equal(to.b, want) {
				t.Errorf("bytes differ after the transfer")
			}
		})
	}
}

// TestManyOutstanding fills the queue, by polling and by events alike.
func TestManyOutstanding(t *testing.T) {
	for name, take := range map[string]func(*rc.Conn, []rc.Completion) (int, error){
		"polling": (*rc.Conn).Poll,
		"events": func(c *rc.Conn, dst []rc.Completion) (int, error) {
			return c.Wait(patience(t), dst)
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t)
			const depth = 128 // the default
			here, there := newBuffer(t, a.p, depth*mem.PageSize), newBuffer(t, b.p, depth*mem.PageSize)
			order := rand.New(rand.NewPCG(1, 2)).Perm(depth)
			for _, i := range order {
				offset := uint64(i) * mem.PageSize
				err := a.Write(uint64(i), rc.Local{Range: part(here.g.Range, offset, mem.PageSize), LKey: here.g.LKey},
					rc.Remote{Addr: there.remote().Addr + offset, RKey: there.g.RKey})
				if err != nil {
					t.Fatalf("write %d: %v", i, err)
				}
			}
			var got [10]rc.Completion
			deadline := time.Now().Add(time.Minute)
			for seen := 0; seen < depth; {
				n, err := take(a.Conn, got[:])
				if err != nil || time.Now().After(deadline) {
					t.Fatalf("after %d completions: %v", seen, err)
				}
				for _, c := range got[:n] {
					if c.Err() != nil || c.ID != uint64(order[seen]) {
						t.Fatalf("completion %d is %+v, want success of %d", seen, c, order[seen])
					}
					seen++
				}
			}
			if !bytes.Equal(here.b, there.b) {
				t.Error("bytes differ")
			}
		})
	}
}

func TestFullQueueIsRefusedAndRecovers(t *testing.T) {
	a, b := pair(t)
	there := newBuffer(t, b.p, mem.PageSize)
	posted := 0
	for ; posted < 100_000; posted++ { // a device may give more room than was asked for
		err := b.Receive(uint64(posted), there.local())
		if errors.Is(err, rc.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if posted < 128 || posted == 100_000 {
		t.Fatalf("the queue took %d receives, asked for 128", posted)
	}
	here := newBuffer(t, a.p, mem.PageSize)
	must(t, a.Conn, a.Send(1, here.local()))
	must(t, b.Conn, nil)
	if err := b.Receive(1, there.local()); err != nil {
		t.Errorf("no room after a completion: %v", err)
	}
}

// TestStaleKeysFail: once a region is deregistered, its keys fail with the
// completion status that the InfiniBand specification names, and nothing is moved.
func TestStaleKeysFail(t *testing.T) {
	for _, c := range []struct {
		name        string
		staleRemote bool
		want        rc.Status
		post        func(a end, here, there buffer) error
	}{
		{"write, remote key", true, rc.StatusRemoteAccess, func(a end, here, there buffer) error {
			return a.Write(1, here.local(), there.remote())
		}},
		{"read, remote key", true, rc.StatusRemoteAccess, func(a end, here, there buffer) error {
			return a.Read(1, here.local(), there.remote())
		}},
		{"write, local key", false, rc.StatusLocalProtection, func(a end, here, there buffer) error {
			return a.Write(1, here.local(), there.remote())
		}},
		{"read, local key", false, rc.StatusLocalProtection, func(a end, here, there buffer) error {
			return a.Read(1, here.local(), there.remote())
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pair(t)
			here, there := newBuffer(t, a.p, 5*mem.PageSize), newBuffer(t, b.p, 5*mem.PageSize)
			if err := c.post(a, here, there); err != nil { // the keys are good at first
				t.Fatal(err)
			}
			must(t, a.Conn, nil)
			clear(here.b)
			for i := range there.b {
				there.b[i] = 0xff
			}
			var err error
			if c.staleRemote {
				err = b.p.Deregister(there.g)
			} else {
				err = a.p.Deregister(here.g)
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.post(a, here, there); err != nil {
				t.Fatal(err)
			}
			got := await(t, a.Conn)
			if c.name == "write, local key" && got.Status == rc.StatusFlushed &&
				strings.HasPrefix(a.p.Device().Info().Name, "rxe") {
				// rdma_rxe moves the queue pair to ERROR and then reports the very request
				// that failed as flushed (rxe_comp.c drains the send queue), seen in Linux 6.12.
				t.Log("this device flushes instead")
			} else if got.Status != c.want {
				t.Errorf("completed with %q (vendor %#x), want %q", got.Status, got.Vendor, c.want)
			}
			if bytes.ContainsFunc(here.b, func(r rune) bool { return r != 0 }) || bytes.IndexByte(there.b, 0) >= 0 {
				t.Error("the stale key moved bytes")
			}
		})
	}
}

// TestFailureFlushesTheRest: a failed request takes the connection with it,
// every later one completes as flushed, and a new connection works.
func TestFailureFlushesTheRest(t *testing.T) {
	a, b := pair(t)
	here, there := newBuffer(t, a.p, mem.PageSize), newBuffer(t, b.p, mem.PageSize)
	for i := range uint64(5) {
		bad := there.remote()
		if i == 2 {
			bad.RKey ^= 0xff
		}
		if err := a.Write(i, here.local(), bad); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []rc.Status{rc.StatusSuccess, rc.StatusSuccess, rc.StatusRemoteAccess,
		rc.StatusFlushed, rc.StatusFlushed} {
		got := await(t, a.Conn)
		if got.ID != uint64(i) || got.Status != want {
			t.Errorf("completion %+v (%v), want %d %v", got, got.Status, i, want)
		}
		var typed *rc.CompletionError
		if (got.Err() == nil) != (want == rc.StatusSuccess) || got.Err() != nil && !errors.As(got.Err(), &typed) {
			t.Errorf("error of %+v is %v", got, got.Err())
		}
	}
	c, d := pair(t)
	here2, there2 := newBuffer(t, c.p, mem.PageSize), newBuffer(t, d.p, mem.PageSize)
	must(t, c.Conn, c.Write(9, here2.local(), there2.remote()))
}

func TestWaitEndsWithItsContextAndWithClose(t *testing.T) {
	a, b := pair(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	reason := errors.New("changed my mind")
	time.AfterFunc(20*time.Millisecond, func() { cancel(reason) })
	var got [1]rc.Completion
	if n, err := a.Wait(ctx, got[:]); n != 0 || !errors.Is(err, reason) {
		t.Errorf("cancelled Wait = %d, %v", n, err)
	}
	here, there := newBuffer(t, a.p, mem.PageSize), newBuffer(t, b.p, mem.PageSize)
	must(t, a.Conn, a.Write(1, here.local(), there.remote())) // an interrupted Wait harms nothing

	time.AfterFunc(20*time.Millisecond, func() { _ = a.Close() })
	if n, err := a.Wait(patience(t), got[:]); n != 0 || !errors.Is(err, rc.ErrClosed) {
		t.Errorf("Wait of a closed connection = %d, %v", n, err)
	}
	if n, err := b.Wait(patience(t), got[:]); n != 0 || !errors.Is(err, rc.ErrPeerGone) {
		t.Errorf("Wait of the other end = %d, %v", n, err)
	}
	if err := a.Write(2, here.local(), there.remote()); !errors.Is(err, rc.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestConnectGivesUpWithItsContext(t *testing.T) {
	p, sock := alone(t)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if c, err := rc.Connect(ctx, sock, p, rc.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("connected to nobody: %v, %v", c, err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("the failed connection holds the protection domain: %v", err)
	}
}

func TestProviderStaysWhileConnected(t *testing.T) {
	a, b := pair(t)
	if err := a.p.Close(); !errors.Is(err, verbs.ErrBusy) {
		t.Fatalf("closing the provider of an open connection: %v, want ErrBusy", err)
	}
	for _, c := range []*rc.Conn{a.Conn, b.Conn} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.p.Close(); err != nil {
		t.Errorf("closing it after the connection: %v", err)
	}
}
