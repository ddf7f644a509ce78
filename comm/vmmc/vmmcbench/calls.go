package vmmcbench

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	netrpc "net/rpc"

	"pinwheel/comm/vmmc/rpc"
	"pinwheel/comm/vmmc/stream"
)

// Names of what carries calls and pages.
const (
	streams  = "vmmc/stream"
	ourCalls = "vmmc/rpc"
	theirs   = "net/rpc"
)

const service = 1

var peers = stream.Options{Peers: both}

// listener returns what accepts connections of a kind, and what makes them.
func (s *stage) listener(by, over string) (l net.Listener, dial func(context.Context) (net.Conn, error), err error) {
	if by == streams {
		n, err := s.nodes(over)
		if err != nil {
			return nil, nil, err
		}
		l, err := stream.Listen(n[1], service, peers)
		if err != nil {
			return nil, nil, err
		}
		return l, func(ctx context.Context) (net.Conn, error) {
			return stream.Dial(ctx, n[0], n[1].Addresses()[0], service, peers)
		}, nil
	}
	network, address := s.listen(over)
	if l, err = net.Listen(network, address); err != nil {
		return nil, nil, err
	}
	return l, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, l.Addr().String())
	}, nil
}

// nullCalls calls a procedure of comm/vmmc/rpc that does nothing.
func nullCalls(over string) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		l, dial, err := s.listener(streams, over)
		if err != nil {
			return nil, err
		}
		server := rpc.NewServer(rpc.Options{})
		server.Handle(1, func(_ context.Context, _, reply []byte) ([]byte, error) { return reply, nil }, rpc.Inline)
		served := make(chan error, 1)
		go func() { served <- server.Serve(l.(*stream.Listener)) }()
		s.later(func() { server.Close(); l.Close(); <-served })
		c, err := dial(s.ctx)
		if err != nil {
			return nil, err
		}
		client := rpc.NewClient(c.(*stream.Conn), rpc.Options{})
		s.later(func() { client.Close() })
		return func() error {
			_, err := client.Call(context.Background(), 1, nil, nil)
			return err
		}, nil
	}
}

// Null is the receiver of net/rpc, which wants it to be exported.
type Null struct{}

// Do does nothing.
func (Null) Do(struct{}, *struct{}) error { return nil }

// theirCalls is the same by net/rpc over sockets.
func theirCalls(over string) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		c, conn, err := s.sockets(over)
		if err != nil {
			return nil, err
		}
		server := netrpc.NewServer()
		if err := server.Register(Null{}); err != nil {
			return nil, err
		}
		served := make(chan struct{})
		go func() { server.ServeConn(conn); close(served) }()
		client := netrpc.NewClient(c)
		s.later(func() { client.Close(); <-served })
		return func() error { return client.Call("Null.Do", struct{}{}, new(struct{})) }, nil
	}
}

const pageBytes = 1 << 20 // 1 MiB

var errShort = errors.New("the page is not whole")

// pages gets pages by HTTP.
func pages(by, over string) func(*stage) (func() error, error) {
	return func(s *stage) (func() error, error) {
		l, dial, err := s.listener(by, over)
		if err != nil {
			return nil, err
		}
		page := make([]byte, pageBytes)
		server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(page)
		})}
		served := make(chan struct{})
		go func() { _ = server.Serve(l); close(served) }()
		client := http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
		}}
		s.later(func() { client.CloseIdleConnections(); server.Close(); <-served })
		return func() error {
			answer, err := client.Get("http://b/")
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			n, err := io.Copy(io.Discard, answer.Body)
			if err == nil && n != pageBytes {
				err = errShort
			}
			return err
		}, nil
	}
}
