package rpc

import (
	"context"
	"net"
	netrpc "net/rpc"
	"strings"
	"testing"
)

type Null struct{}

func (Null) Call(int, *int) error { return nil }

func BenchmarkNull(b *testing.B) {
	for name := range networks {
		b.Run(name, func(b *testing.B) {
			w := begin(b, name, Options{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := w.c.Call(context.Background(), null, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("net-rpc", func(b *testing.B) {
		l, err := net.Listen("unix", strings.TrimPrefix(socket(b), "unix:"))
		if err != nil {
			b.Fatal(err)
		}
		s := netrpc.NewServer()
		_ = s.Register(Null{})
		go s.Accept(l)
		c, err := netrpc.Dial("unix", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		var x int
		for b.Loop() {
			if err := c.Call("Null.Call", 1, &x); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
		l.Close()
	})
}
