package stream

import (
	"io"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc"
	"pinwheel/internal/testwait"
)

// Only one end shares memory: the other one can't say in time whether it looks.
func TestOneEndSharesMemory(t *testing.T) {
	testwait.Bound(t)
	shared, tcp := networks["shared"], networks["tcp"]
	open := func(name string, listen ...string) *vmmc.Node {
		n, err := vmmc.Open(vmmc.Options{
			Name: name, Listen: listen, Token: "0123456789abcdef0123456789abcdef", Heartbeat: testwait.Limit / 2,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		return n
	}
	a, b := open("a", tcp(t)), open("b", shared(t))
	l := listen(t, b, everyone)
	o := everyone
	o.Address = a.Addresses()[0]
	c, err := Dial(context1(t), a, b.Addresses()[0], service, o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if x := s.(*Conn); !c.to.Shared() || x.to.Shared() {
		t.Fatalf("shared: %v and %v", c.to.Shared(), x.to.Shared())
	}
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(s, struct{ io.Reader }{s})
		s.Close()
		done <- err
	}()
	for k := range 300 {
		if k%100 == 0 {
			time.Sleep(5 * maxSpin) // both sleep: the next byte must wake them
		}
		b := []byte{byte(k)}
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, b); err != nil || b[0] != byte(k) {
			t.Fatal(b, err)
		}
	}
	c.Close()
	if err := testwait.Receive(t, "the end of the echo", done); err != nil {
		t.Error(err)
	}
}

// A peer that looks can read the last byte, and say that it closes, before the Write of that byte returns.
func TestWriteThatWasReadSucceeds(t *testing.T) {
	c, s, _, _ := pipe(t, "shared", everyone)
	for n := range uint64(200) {
		done := make(chan struct{})
		looking := make(chan struct{})
		go func() {
			close(looking)
			for s.in.tail.Load() != n+1 { // the write below
			}
			c.in.state.Store(closed)
			close(done)
		}()
		<-looking
		c.in.looks.Store(asleep) // Write makes a system call after it has sent the byte
		if _, err := c.Write([]byte{1}); err != nil {
			t.Fatalf("byte %d: %v", n, err)
		}
		testwait.Receive(t, "the byte", done)
		c.in.state.Store(0)
	}
}

// Ends that wait look for maxSpin, and then sleep: one that went on looking would take a processor.
func TestWaitersSleep(t *testing.T) {
	c, s, _, _ := pipe(t, "shared", everyone)
	done := make(chan error, 2)
	for _, end := range []*Conn{c, s} {
		go func() {
			_, err := io.ReadFull(end, make([]byte, 1))
			done <- err
		}()
	}
	busy := func() time.Duration {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	testwait.Until(t, "a while that takes little processor time", func() bool {
		before, begin := busy(), time.Now()
		time.Sleep(100 * time.Millisecond)
		return busy()-before < time.Since(begin)/10
	})
	for _, end := range []*Conn{c, s} {
		if _, err := end.Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := testwait.Receive(t, "a byte", done); err != nil {
			t.Error(err)
		}
	}
}
