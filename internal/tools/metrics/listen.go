package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sys/unix"

	"pinwheel/internal/unixsocket"
)

// Address is where to serve: a Unix socket or a port of the loopback interface.
type Address struct {
	network, address string // as net.Listen takes them
}

// ParseAddress reads unix:/PATH, or a loopback address with a port. It refuses everything else: counters of a job are
// no business of other computers.
func ParseAddress(text string) (Address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if !filepath.IsAbs(path) {
			return Address{}, fmt.Errorf("%q names no socket by its absolute path, as in unix:/run/user/1000/pinwheel", text)
		}
		if err := unixsocket.CheckPath(path); err != nil {
			return Address{}, err
		}
		return Address{"unix", path}, nil
	}
	if port, ok := strings.CutPrefix(text, "localhost:"); ok {
		text = "127.0.0.1:" + port
	}
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return Address{},
			fmt.Errorf("%q is neither unix:/PATH nor a loopback address with a port, as in 127.0.0.1:9000", text)
	}
	if !at.Addr().IsLoopback() {
		return Address{}, fmt.Errorf("%s is no loopback address: only programs on this node may read the metrics", at.Addr())
	}
	return Address{"tcp", at.String()}, nil
}

// Listen opens the address. A Unix socket is its owner's only, from its first moment on: the mask is that of the
// process, so nothing else may create a file meanwhile. One that nobody listens on any more is replaced.
func Listen(a Address) (net.Listener, error) {
	if a.network != "unix" {
		return net.Listen(a.network, a.address)
	}
	defer unix.Umask(unix.Umask(0o177))
	return unixsocket.Listen(a.network, a.address)
}

// urlPath is where the metrics are served.
const urlPath = "/metrics"

// handler serves the metrics.
func handler(g prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+urlPath, promhttp.HandlerFor(g, promhttp.HandlerOpts{
		MaxRequestsInFlight: 4, // each takes a look of its own
		Timeout:             10 * time.Second,
	}))
	return mux
}

// Serve answers scrapes until the context ends, and closes the listener.
func Serve(ctx context.Context, l net.Listener, g prometheus.Gatherer) error {
	const patience = 10 * time.Second
	s := &http.Server{Handler: handler(g), ReadTimeout: patience, WriteTimeout: 2 * patience,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // a scrape under way is not worth waiting for
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
