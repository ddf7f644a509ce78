package proxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

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
			go func() {
				defer c.Close()
				b, _ := io.ReadAll(c)
				_, _ = c.Write(b)
			}()
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
	dir, err := os.MkdirTemp("", "proxy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	middle := "vmmc:unix:" + filepath.Join(dir, "m")
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
	l, err := net.Listen("tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		t.Fatal(err)
	}
	middle := "vmmc:tcp:" + l.Addr().String()
	l.Close()
	serve(t, Options{Listen: middle, Target: echo(t), TokenFile: token})
	talk(t, serve(t, Options{Listen: "tcp:127.0.0.1:0", Target: middle, TokenFile: token}))
}

func TestTargetThatIsNotThereEndsTheConnection(t *testing.T) {
	testwait.Bound(t)
	dir, err := os.MkdirTemp("", "proxy")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	middle := "vmmc:unix:" + filepath.Join(dir, "m")
	warned := make(chan string, 1)
	serve(t, Options{Listen: middle, Target: "unix:" + filepath.Join(dir, "nobody"), Warn: func(m string) { warned <- m }})
	c, err := net.Dial("tcp", serve(t, Options{Listen: "tcp:127.0.0.1:0", Target: middle}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if b, err := io.ReadAll(c); len(b) > 0 {
		t.Errorf("%q, %v", b, err)
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "nobody") {
		t.Errorf("warned: %s", m)
	}
}
