package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"pinwheel/comm/peer"
	"pinwheel/comm/peer/peertest"
	"pinwheel/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a proxy until the test ends, and returns where it listens.
func serve(t *testing.T, o Options) string {
	t.Helper()
	o.Service = 1
	if o.Warn == nil {
		o.Warn = func(m string) { t.Errorf("warned: %s", m) }
	}
	p, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- p.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := testwait.Receive(t, "the end of the proxy", served); err != nil {
			t.Error(err)
		}
	})
	return p.Addr().String()
}

// echo is a server that answers when its client has said everything.
func echo(t *testing.T) string {
	return serverOf(t, func(c net.Conn) {
		defer c.Close()
		b, _ := io.ReadAll(c)
		_, _ = c.Write(b)
	})
}

// serverOf returns the address of a server that has each connection answered by itself, until the test ends.
func serverOf(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answer(c)
		}
	}()
	return "tcp:" + l.Addr().String()
}

func talk(t *testing.T, address string) {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := bytes.Repeat([]byte("hello "), 200_000)
	if _, err := c.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}

func TestHalfCloseGoesThroughOverSharedMemory(t *testing.T) {
	testwait.Bound(t)
	middle := pathOf(t)
	serve(t, Options{Listen: middle, Target: echo(t)})
	front := serve(t, Options{Listen: "tcp:127.0.0.1:0", Target: middle})
	for range 3 {
		talk(t, front)
	}
}

func TestProxiesWithATokenTalkOverTLS(t *testing.T) {
	testwait.Bound(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(strings.Repeat("t", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", testwait.Loopback()+":0") // a port that is free
	if err != nil {
		t.Fatal(err)
	}
	middle := "vmmc:tcp:" + l.Addr().String()
	l.Close()
	serve(t, Options{Listen: middle, Target: echo(t), End: peer.End{TokenFile: token}})
	talk(t, serve(t, Options{Listen: "tcp:127.0.0.1:0", Target: middle, End: peer.End{TokenFile: token}}))
}

// The proxy at the target is told the name of this one, which the certificate has, and not its number.
func TestProxyIsReachedByTheNameInItsCertificate(t *testing.T) {
	testwait.Bound(t)
	l, err := net.Listen("tcp", "localhost:0") // a port that is free
	if err != nil {
		t.Skipf("no localhost: %v", err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	for _, bind := range []string{"", "tcp:127.0.0.1:0"} {
		o := Options{End: peertest.Certified(t)}
		back := o
		o.Listen, o.Target = "vmmc:tcp:localhost:"+port, echo(t)
		back.Listen, back.Target, back.From, back.Bind = "tcp:127.0.0.1:0", o.Listen, "tcp:localhost:0", bind
		t.Run("bound to "+bind, func(t *testing.T) {
			serve(t, o)
			talk(t, serve(t, back))
		})
	}
}

func TestAddressesThatCantBeReachedAreRefused(t *testing.T) {
	for what, o := range map[string]Options{
		"another network":        {Target: "vmmc:tcp:server:1", End: peer.End{From: "unix:/run/s"}},
		"any address":            {Target: "vmmc:tcp:server:1", End: peer.End{From: "tcp:0.0.0.0:1"}},
		"any address of IPv6":    {Target: "vmmc:tcp:server:1", End: peer.End{From: "tcp:[::]:1"}},
		"no host":                {Target: "vmmc:tcp:server:1", End: peer.End{From: "tcp::1"}},
		"bound, and not reached": {Target: "vmmc:unix:/run/s", End: peer.End{Bind: "unix:/run/t"}},
		"bound to another network": {
			Target: "vmmc:tcp:server:1", End: peer.End{From: "tcp:client:1", Bind: "unix:/run/s"},
		},
		"no address to bind to": {Target: "vmmc:tcp:server:1", End: peer.End{From: "tcp:client:1", Bind: "client:1"}},
	} {
		o.Listen = "tcp:127.0.0.1:0"
		if err := o.Check(); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

// cut is a server that says something and is then gone.
func cut(t *testing.T) string {
	return serverOf(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "half of a page")
		_, _ = c.Read(make([]byte, 1)) // until the client has it
		_ = c.(*net.TCPConn).SetLinger(0)
		c.Close()
	})
}

func TestFailureOfTheServerIsNoEndOfTheStream(t *testing.T) {
	testwait.Bound(t)
	middle := pathOf(t)
	serve(t, Options{Listen: middle, Target: cut(t)})
	c, err := net.Dial("tcp", serve(t, Options{Listen: "tcp:127.0.0.1:0", Target: middle}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.ReadFull(c, make([]byte, len("half of a page"))); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err == nil {
		t.Errorf("%q, and then the end", b)
	}
}

func TestFailureOfTheClientIsNoEndOfTheStream(t *testing.T) {
	testwait.Bound(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	middle := pathOf(t)
	serve(t, Options{Listen: middle, Target: "tcp:" + l.Addr().String()})
	c, err := net.Dial("tcp", serve(t, Options{Listen: "tcp:127.0.0.1:0", Target: middle}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "half of a page"); err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := io.ReadFull(s, make([]byte, len("half of a page"))); err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).SetLinger(0)
	c.Close()
	if b, err := io.ReadAll(s); err == nil {
		t.Errorf("%q, and then the end", b)
	}
}

// refusing is a target that takes nothing, but answers, unless it is closed before.
type refusing struct {
	net.Conn
	asked, closed chan struct{}
	close         sync.Once
	answer        io.Reader
}

func (r *refusing) Write([]byte) (int, error) { close(r.asked); return 0, syscall.EPIPE }
func (r *refusing) CloseWrite() error         { return syscall.EPIPE }
func (r *refusing) Close() error              { r.close.Do(func() { close(r.closed) }); return nil }

func (r *refusing) Read(b []byte) (int, error) {
	<-r.asked
	select {
	case <-r.closed:
		return 0, net.ErrClosed
	case <-time.After(20 * time.Millisecond): // for whoever closes it too early
		return r.answer.Read(b)
	}
}

func TestServerThatTakesNothingMoreIsHeard(t *testing.T) {
	testwait.Bound(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	client, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		target := &refusing{asked: make(chan struct{}), closed: make(chan struct{}), answer: strings.NewReader("too large")}
		relay(client, target)
		client.Close()
	})
	if _, err := io.WriteString(c, "x"); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); string(b) != "too large" || err != nil {
		t.Errorf("read %q, %v", b, err)
	}
	all.Wait()
}

// pathOf is an address for two proxies.
func pathOf(t *testing.T) string { return "vmmc:unix:" + filepath.Join(testwait.ShortDir(t), "m") }

func TestProxyStartsAgainAfterItWasKilled(t *testing.T) {
	testwait.Bound(t)
	middle := pathOf(t)
	front := filepath.Join(filepath.Dir(strings.TrimPrefix(middle, "vmmc:unix:")), "f")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: front})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	serve(t, Options{Listen: middle, Target: echo(t)})
	serve(t, Options{Listen: "unix:" + front, Target: middle})
}

// Nobody is let in who would be cut off.
func TestPeerThatIsNotThereIsRefused(t *testing.T) {
	testwait.Bound(t)
	for _, target := range []string{pathOf(t), "vmmc:tcp:127.0.0.1:1"} {
		if _, err := Open(Options{Listen: "tcp:127.0.0.1:0", Target: target}); err == nil ||
			!strings.Contains(err.Error(), target+": no proxy listens there") {
			t.Errorf("%v", err)
		}
	}
}

func TestTargetThatIsNotThereEndsTheConnection(t *testing.T) {
	testwait.Bound(t)
	middle := pathOf(t)
	warned := make(chan string, 1)
	nobody := "unix:" + filepath.Join(t.TempDir(), "nobody")
	serve(t, Options{Listen: middle, Target: nobody, Warn: func(m string) { warned <- m }})
	c, err := net.Dial("tcp", serve(t, Options{Listen: "tcp:127.0.0.1:0", Target: middle}))
	if err == nil {
		defer c.Close()
		if b, err := io.ReadAll(c); len(b) > 0 || err == nil {
			t.Errorf("%q, %v", b, err)
		}
	} else if !errors.Is(err, syscall.ECONNRESET) { // at once
		t.Fatal(err)
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "nobody") {
		t.Errorf("warned: %s", m)
	}
}
