package metrics

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/monitor"
	"pinwheel/internal/tools/monitor/monitortest"
	"pinwheel/internal/unixsocket"
)

func TestOnlyThisNodeMayAsk(t *testing.T) {
	for text, says := range map[string]string{
		"127.0.0.1:9400": "", "127.8.9.1:1": "", "[::1]:9400": "", "localhost:9400": "", "unix:/run/x": "",
		":9400": "neither", "9400": "neither", "0.0.0.0:9400": "no loopback", "[::]:9400": "no loopback",
		"10.0.0.7:9400": "no loopback", "node17:9400": "neither", "127.0.0.1": "neither", "127.0.0.1:70000": "neither",
		"unix:x": "absolute", "unix:": "absolute", "unix:@x": "absolute", "unix:/" + strings.Repeat("x", 107): "107 bytes",
		"/run/x": "neither",
	} {
		_, err := ParseAddress(text)
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// scrape gets a path over the listener's address.
func scrape(t *testing.T, l net.Listener, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, l.Addr().Network(), l.Addr().String())
		},
	}}
	r, err := client.Get("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(text)
}

func TestScrape(t *testing.T) {
	testwait.Bound(t)
	socket := filepath.Join(t.TempDir(), "socket")
	for _, text := range []string{"unix:" + socket, "127.0.0.1:0"} {
		a, err := ParseAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Listen(a)
		if err != nil {
			t.Fatal(err)
		}
		failing := false
		g := Registry(func() (monitor.Look, error) {
			if failing {
				return monitor.Look{}, errLook
			}
			return monitortest.Node(2, 75, 0), nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Serve(ctx, l, g) }()
		if status, body := scrape(t, l, urlPath); status != 200 || !strings.Contains(body, "\npinwheel_hits_total{") {
			t.Errorf("%s: status %d, %s", text, status, body)
		}
		if status, _ := scrape(t, l, "/"); status != 404 {
			t.Errorf("%s: status %d of another path", text, status)
		}
		failing = true
		if status, body := scrape(t, l, urlPath); status != 500 || !strings.Contains(body, errLook.Error()) {
			t.Errorf("%s: status %d, %s", text, status, body)
		}
		cancel()
		if err := testwait.Receive(t, "the end of Serve", done); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := os.Lstat(socket); err == nil {
		t.Error("the socket is left")
	}
}

func TestSocketIsItsOwnersOnlyAndReplacesADeadOne(t *testing.T) {
	a := Address{"unix", filepath.Join(t.TempDir(), "socket")}
	first, err := Listen(a)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(a.address); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Listen(a); err == nil {
		t.Error("the socket of a living server was taken away")
	}
	first.(*unixsocket.Listener).UnixListener.Close() // it leaves what SIGKILL does
	second, err := Listen(a)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
	if err := os.WriteFile(a.address, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(a); err == nil {
		t.Error("a file that is no socket was replaced")
	}
}
