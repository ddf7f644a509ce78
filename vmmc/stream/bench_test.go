package stream

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
)

// BenchmarkHTTP gets pages of 1 MiB over a stream, and over TCP on this machine.
func BenchmarkHTTP(b *testing.B) {
	page := make([]byte, 1<<20) // 1 MiB
	for _, name := range []string{"shared", "tcp", "socket"} {
		b.Run(name, func(b *testing.B) {
			l, dial := dialer(b, name)
			server := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write(page)
			})}
			served := make(chan struct{})
			go func() { _ = server.Serve(l); close(served) }()
			client := http.Client{Transport: &http.Transport{
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial() },
			}}
			b.SetBytes(int64(len(page)))
			for b.Loop() {
				answer, err := client.Get("http://b/")
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				if err != nil || n != int64(len(page)) {
					b.Fatal(n, err)
				}
			}
			client.CloseIdleConnections()
			server.Close()
			<-served
		})
	}
}

// BenchmarkPingPong is a word to and fro.
func BenchmarkPingPong(b *testing.B) {
	for _, name := range []string{"shared", "tcp", "socket"} {
		b.Run(name, func(b *testing.B) {
			l, dial := dialer(b, name)
			c, err := dial()
			if err != nil {
				b.Fatal(err)
			}
			s, err := l.Accept()
			if err != nil {
				b.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = io.Copy(s, struct{ io.Reader }{s})
				s.Close()
			}()
			word := make([]byte, 8)
			for b.Loop() {
				if _, err := c.Write(word); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(c, word); err != nil {
					b.Fatal(err)
				}
			}
			c.Close()
			<-done
		})
	}
}

// dialer returns a listener, and what connects to it.
func dialer(b *testing.B, name string) (net.Listener, func() (net.Conn, error)) {
	if name == "socket" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { l.Close() })
		return l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }
	}
	x, y := openNode(b, "a", name), openNode(b, "b", name)
	return listen(b, y, everyone), func() (net.Conn, error) {
		return Dial(context.Background(), x, y.Addresses()[0], service, everyone)
	}
}
