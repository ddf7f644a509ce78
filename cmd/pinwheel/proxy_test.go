package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
)

// An unmodified client reaches an unmodified server through two proxies.
func TestProxiesCarryHTTP(t *testing.T) {
	want := strings.Repeat("a page ", 100_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, want)
	}))
	defer server.Close()
	dir := testwait.ShortDir(t)
	middle, front := "vmmc:unix:"+filepath.Join(dir, "m"), filepath.Join(dir, "f")
	startProxy(t, middle, "tcp:"+server.Listener.Addr().String())
	startProxy(t, "unix:"+front, middle)
	client := http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", front) },
	}}
	defer client.CloseIdleConnections()
	for range 3 {
		answer, err := client.Get("http://server/")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || string(got) != want {
			t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
		}
	}
}

// startProxy runs a proxy until the test ends, and returns when it listens at a socket.
func startProxy(t *testing.T, listen, target string) {
	t.Helper()
	cmd := testwait.Command(t, binary, "proxy", listen, target)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	path := strings.TrimPrefix(strings.TrimPrefix(listen, "vmmc:"), "unix:")
	testwait.Until(t, "the proxy listens", func() bool { // its socket is there a moment before
		c, err := net.Dial("unix", path)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// A program is not let in where there is nobody to connect it to.
func TestProxyWithoutAPeerIsRefused(t *testing.T) {
	t.Setenv("TMPDIR", testwait.ShortDir(t))
	_, stderr, state := pinwheel(t, "proxy tcp:127.0.0.1:0 vmmc:unix:/nowhere/s")
	if state.ExitCode() != 1 {
		t.Errorf("%v", state)
	}
	oneLine(t, stderr, "vmmc:unix:/nowhere/s: no proxy listens there: start that one first")
}

func TestSignalsEndTheProxy(t *testing.T) {
	commandtest.NotIgnored(t, unix.SIGTERM)
	middle := "vmmc:unix:" + filepath.Join(testwait.ShortDir(t), "m")
	startProxy(t, middle, "tcp:127.0.0.1:1")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	commandtest.EndsBy(t, unix.SIGTERM, func() *exec.Cmd {
		cmd := testwait.Command(t, binary, "proxy", "unix:front", middle)
		cmd.Dir = dir
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		front := filepath.Join(dir, "front")
		testwait.Until(t, "the proxy listens", func() bool { _, err := os.Stat(front); return err == nil })
		return cmd
	})
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}
