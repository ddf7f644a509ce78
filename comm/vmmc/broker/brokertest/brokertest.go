// Package brokertest runs brokers for tests.
package brokertest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/internal/testwait"
)

// Socket is that of the broker of Main, which lets all users in.
var Socket string

// Main is a testing.M beside which a broker runs.
type Main struct{ *testing.M }

// Run runs the tests.
func (m Main) Run() int {
	dir, err := os.MkdirTemp("", "broker")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o711); err != nil { // for other users
		panic(err)
	}
	Socket = filepath.Join(dir, "b")
	stop, err := serve(Socket, broker.Options{AllUsers: true})
	if err != nil {
		panic(err)
	}
	defer stop()
	return m.M.Run()
}

// serve runs a broker until it is stopped.
func serve(socket string, o broker.Options) (stop func() error, err error) {
	l, err := broker.Listen(socket, o.AllUsers)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- broker.Serve(ctx, l, o) }()
	return sync.OnceValue(func() error { cancel(); return <-ended }), nil
}

// Serve runs a broker at a socket until it is stopped, or the test ends.
func Serve(t testing.TB, socket string, o broker.Options) (stop func()) {
	t.Helper()
	end, err := serve(socket, o)
	if err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// Node runs the broker of a node until it is stopped, or the test ends. Other nodes find it at the address.
func Node(t testing.TB, r broker.Remote) (socket, address string, stop func()) {
	t.Helper()
	var err error
	if r.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	socket = filepath.Join(testwait.ShortDir(t), "b")
	return socket, r.Listener.Addr().String(), Serve(t, socket, broker.Options{Remote: &r})
}
