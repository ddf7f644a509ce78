package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

// gate is a way to an address over which nothing goes while it is shut.
type gate struct {
	l    net.Listener
	shut sync.RWMutex // held for writing: nothing goes
}

func newGate(t *testing.T, to string) (g *gate, address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g = &gate{l: l}
	var all sync.WaitGroup
	carry := func(to, from net.Conn) {
		defer to.Close()
		for b := make([]byte, 4096); ; {
			n, err := from.Read(b)
			if err != nil {
				return
			}
			g.shut.RLock()
			_, err = to.Write(b[:n])
			g.shut.RUnlock()
			if err != nil {
				return
			}
		}
	}
	all.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to[len("tcp:"):])
			if err != nil {
				a.Close()
				continue
			}
			all.Go(func() { carry(a, b) })
			all.Go(func() { carry(b, a) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return g, "tcp:" + l.Addr().String()
}

// A bulk sender of the same node that sends until vmmc.ErrTooManyOps delays a stream, and does not stop it.
func TestStreamsGoOnAfterTooManyOps(t *testing.T) {
	testwait.Bound(t)
	b := openNode(t, "b", "tcp")
	g, address := newGate(t, b.Addresses()[0])
	a := openNode(t, "a", "tcp")
	l := listen(t, b, everyone)
	c, err := Dial(context1(t), a, address, service, everyone)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	bulk := make([]byte, 64<<10)
	if _, err := b.Export(1, make([]byte, len(bulk)), everyone.Peers, vmmc.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	i, err := a.Import(context1(t), 1, address)
	if err != nil {
		t.Fatal(err)
	}
	full := make([]byte, len(c.in.ring)) // nothing more goes to a before it has told that it read
	if _, err := s.Write(full); err != nil {
		t.Fatal(err)
	}
	g.shut.Lock()
	open := sync.OnceFunc(g.shut.Unlock)
	defer open()
	for refused := 0; refused < 20; { // then most likely the buffers of the kernel are full, too
		switch _, err := i.SendAsync(bulk, 0, vmmc.SendOptions{}); {
		case err == nil:
			refused = 0
		case errors.Is(err, vmmc.ErrTooManyOps):
			refused++
			time.Sleep(time.Millisecond)
		default:
			t.Fatal(err)
		}
	}
	if _, err := io.ReadFull(c, full); err != nil {
		t.Fatal(err)
	}
	c.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	if err := c.CloseWrite(); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("CloseWrite while nothing can be sent: %v", err)
	}
	c.SetWriteDeadline(time.Time{})
	answered := make(chan error)
	go func() {
		_, err := io.ReadFull(c, full[:1])
		answered <- err
	}()
	open()
	if _, err := s.Write(full[:1]); err != nil {
		t.Fatal(err)
	}
	if err := testwait.Receive(t, "the next byte", answered); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); len(got) > 0 || err != nil {
		t.Errorf("read %q, %v", got, err)
	}
}

// Requests that are no requests, and those of many at the same time.
func TestManyConnectAtOnce(t *testing.T) {
	testwait.Bound(t)
	a, b := openNode(t, "a", "shared"), openNode(t, "b", "shared")
	l := listen(t, b, everyone)
	door, err := a.Import(context1(t), service, b.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	for k := range uint64(20) {
		_ = door.Send(context1(t), make([]byte, k*30), k*slotBytes/2, vmmc.SendOptions{Notify: true})
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	var all sync.WaitGroup
	for k := range 50 {
		all.Go(func() {
			c, err := Dial(context1(t), a, b.Addresses()[0], service, everyone)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			want := fmt.Sprint("caller ", k)
			if _, err := io.WriteString(c, want); err != nil {
				t.Error(err)
			}
			_ = c.CloseWrite()
			if got, err := io.ReadAll(c); string(got) != want || err != nil {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	all.Wait()
}

// Those who dial wait for each other where only some may ask at a time.
func TestMoreConnectThanMayAskAtATime(t *testing.T) {
	testwait.Bound(t)
	a, b := openNode(t, "a", "shared"), openNode(t, "b", "shared")
	o := everyone
	o.Peers.MaxImporters = 1
	l := listen(t, b, o)
	door, err := a.Import(context1(t), service, b.Addresses()[0])
	if err != nil {
		t.Fatal(err)
	}
	refused, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = Dial(refused, a, b.Addresses()[0], service, everyone)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while another one asks: %v", err)
	}
	time.AfterFunc(10*time.Millisecond, door.Unimport)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			c, err := Dial(context1(t), a, b.Addresses()[0], service, everyone)
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		})
	}
	for range 3 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	all.Wait()
}
