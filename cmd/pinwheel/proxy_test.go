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

	"pinwheel/internal/command/commandtest"
	"pinwheel/internal/testwait"
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
	for _, args := range [][]string{
		{"proxy", middle, "tcp:" + server.Listener.Addr().String()}, {"proxy", "unix:" + front, middle},
	} {
		cmd := testwait.Command(t, binary, args...)
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	}
	testwait.Until(t, "the proxy listens", func() bool { // its socket is there a moment before
		c, err := net.Dial("unix", front)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
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

func TestSignalsEndTheProxy(t *testing.T) {
	commandtest.NotIgnored(t, unix.SIGTERM)
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	commandtest.EndsBy(t, unix.SIGTERM, func() *exec.Cmd {
		cmd := testwait.Command(t, binary, "proxy", "unix:front", "vmmc:unix:middle")
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
