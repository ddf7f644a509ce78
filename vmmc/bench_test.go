package vmmc

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
)

// The tables of §6: what a message of one word and one of 4 KB cost, beside sockets.

func benchmarkSend(b *testing.B, tr transport, size int, o SendOptions) {
	w := tr.begin(b)
	_, e, i := w.pair(b, size, ExportOptions{Queue: 1024})
	if o.Notify {
		e.Handle(func(Notification) {})
	}
	src := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if err := i.Send(context.Background(), src, 0, o); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSend(b *testing.B) {
	for _, tr := range transports[:3] {
		name := strings.ReplaceAll(tr.name, " ", "-")
		b.Run(name+"/8", func(b *testing.B) { benchmarkSend(b, tr, 8, SendOptions{}) })
		b.Run(name+"/4096", func(b *testing.B) { benchmarkSend(b, tr, 4096, SendOptions{}) })
		b.Run(name+"/8-notify", func(b *testing.B) { benchmarkSend(b, tr, 8, SendOptions{Notify: true}) })
	}
}

// BenchmarkUnixSocket is what sends of shared memory are compared with.
func BenchmarkUnixSocket(b *testing.B) {
	path := strings.TrimPrefix(socket(b), "unix:")
	l, err := net.Listen("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err == nil {
			buf := make([]byte, 4096)
			for err == nil {
				_, err = io.ReadFull(c, buf)
			}
			c.Close()
		}
	}()
	c, err := net.Dial("unix", path)
	if err != nil {
		b.Fatal(err)
	}
	src := make([]byte, 4096)
	b.SetBytes(4096)
	for b.Loop() {
		if _, err := c.Write(src); err != nil {
			b.Fatal(err)
		}
	}
	c.Close()
	l.Close()
	os.Remove(path)
}
