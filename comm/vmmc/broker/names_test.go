package broker

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// A name that is registered again and again wakes those who wait for it, and nobody else.
func TestDialsWaitForTheirOwnNameOnly(t *testing.T) {
	path := serve(t, Options{})
	b := newBroker(within(t), Options{})
	ctx, cancel := context.WithCancel(b.ctx)
	var never, soon sync.WaitGroup
	for range 2 {
		never.Go(func() {
			if _, err := b.find(ctx, key{1, "x"}); !errors.Is(err, context.Canceled) {
				t.Errorf("x: %v", err)
			}
		})
	}
	soon.Go(func() {
		if e, err := b.find(ctx, key{1, "y"}); err != nil || e.name != "y" {
			t.Errorf("y: %+v, %v", e, err)
		}
	})
	dials := func(name string) int {
		b.mu.Lock()
		defer b.mu.Unlock()
		if w := b.awaited[key{1, name}]; w != nil {
			return w.dials
		}
		return 0
	}
	testwait.Until(t, "all wait", func() bool { return dials("x") == 2 && dials("y") == 1 })
	x := b.awaited[key{1, "x"}]
	c, process := pair(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.register(c, &unix.Ucred{Uid: 1}, new(user), &message{Name: "y"})
	}()
	soon.Wait()
	select {
	case <-x.came:
		t.Error("those who wait for x were woken")
	default:
	}
	cancel()
	never.Wait()
	if len(b.awaited) > 0 {
		t.Errorf("%d names are awaited by nobody", len(b.awaited))
	}
	process.Close()
	testwait.Receive(t, "the end of the registration", ended)

	found := make(chan error, 3)
	for range cap(found) {
		go func() {
			c, err := Dial(within(t), path, Target{UID: me(), Name: "z"})
			if err == nil {
				c.Close()
			}
			found <- err
		}()
	}
	exporting(t, path, Exporter{Name: "other"})
	exporting(t, path, Exporter{Name: "z"})
	for range cap(found) {
		if err := testwait.Receive(t, "a connection", found); err != nil {
			t.Error(err)
		}
	}
}

// Each descriptor that an exporter does not read counts against all users.
func TestExporterThatReadsNothingHoldsFewDescriptorsAndKeepsItsName(t *testing.T) {
	testwait.Bound(t)
	ctx := within(t)
	b := newBroker(ctx, Options{})
	c, process := pair(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.register(c, &unix.Ucred{Uid: me()}, new(user), &message{Name: "x"})
	}()
	if _, _, err := process.answer(ctx); err != nil {
		t.Fatal(err)
	}
	k := key{me(), "x"}
	dial := func() error {
		asker, client := pair(t)
		soon, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		if err := b.connect(soon, asker, Origin{UID: me()}, k); err != nil {
			return err
		}
		_, fd, err := client.answer(ctx)
		unix.Close(fd)
		return err
	}
	made := 0
	var err error
	for made < 100 {
		if err = dial(); err == nil {
			made++
		} else if made > 0 || !errors.Is(err, context.DeadlineExceeded) { // the first may be late on a busy machine
			break
		}
	}
	if made < 1 || made > 10 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d connections wait for an exporter that reads nothing, then: %v", made, err)
	}
	if _, err := b.find(ctx, k); err != nil {
		t.Error(err)
	}
	for range made {
		m, fd, err := process.receive()
		unix.Close(fd)
		if err != nil || m.Kind != connect {
			t.Fatalf("%+v, %v", m, err)
		}
	}
	if err := dial(); err != nil {
		t.Errorf("after it has read: %v", err)
	}
	process.Close()
	testwait.Receive(t, "the end of the registration", ended)
}

func readable(t *testing.T, c *conn) bool {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) })
	if err != nil {
		t.Fatal(err)
	}
	return n > 0
}

// A client that does not read its answer holds a descriptor that counts against all users: it must not make room for
// the next one by seeming to be gone.
func TestClientThatTakesNothingKeepsItsPlace(t *testing.T) {
	path := serve(t, Options{MaxClientsOfUser: 4})
	accepted := exporting(t, path, Exporter{Name: "x", Stats: func() Stats { return Stats{} }})
	var clients []*conn
	for _, leave := range []func(*conn) error{
		(*conn).CloseWrite,
		func(c *conn) error { _, err := c.Write([]byte("x")); return err },
		func(c *conn) error { _, err := c.Write(nil); return err }, // an empty message looks like the end
	} {
		c, err := open(within(t), path, &message{Kind: dial, UID: me(), Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		testwait.Receive(t, "a connection", accepted).Close()
		testwait.Until(t, "the answer is there", func() bool { return readable(t, c) })
		if err := leave(c); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	for range 20 { // more than it takes the broker to let somebody go
		if _, err := List(within(t), path); !errors.Is(err, ErrRefused) {
			t.Fatalf("there was room for one more: %v", err)
		}
	}
	for _, c := range clients {
		_, fd, err := c.answer(within(t))
		unix.Close(fd)
		if err != nil {
			t.Error(err)
		}
	}
	testwait.Until(t, "there is room again", func() bool { _, err := List(within(t), path); return err == nil })
}

// Connections of other nodes that an exporter does not take wait for a bounded time, also behind each other.
func TestExporterThatReadsNothingHoldsConnectionsOfOtherNodesForMoments(t *testing.T) {
	testwait.Bound(t)
	b := newBroker(within(t), Options{})
	c, _ := pair(t)
	if err := c.SetWriteBuffer(maxUnread); err != nil {
		t.Fatal(err)
	}
	e := newExporter(c, key{me(), "x"}, new(user), 1, &message{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	from := Origin{me(), "n"}
	var all sync.WaitGroup
	for range maxOfGuest { // one behind the other, they would take longer than a test may
		if err := b.guests.enter(from); err != nil {
			t.Fatal(err)
		}
		id, _ := b.guests.ticket(e, from)
		tcp, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer tcp.Close()
		all.Go(func() { b.redeem(tcp.(*net.TCPConn), id) })
	}
	all.Wait()
	if b.guests.all != 0 {
		t.Errorf("%d places are left", b.guests.all)
	}
}
