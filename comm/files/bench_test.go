package files

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkCopyRange reads a hot file by each transport. What it gets is dropped.
func BenchmarkCopyRange(b *testing.B) {
	const size = 256 << 20 // 256 MiB
	for _, way := range ways {
		b.Run(way.name, func(b *testing.B) {
			w := way.serve(b, ServerOptions{})
			w.write("f", random(size))
			settle(b, w.dir+"/f")
			c := w.client()
			f := open(b, c, "f")
			b.SetBytes(size)
			for b.Loop() {
				if n, err := f.CopyRange(testContext(b), io.Discard, 0, size); n != size || err != nil {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// BenchmarkPlainSendfile is what CopyRange by sendfile(2) is to be compared with: the same system calls, and no protocol.
func BenchmarkPlainSendfile(b *testing.B) {
	const size = 256 << 20 // 256 MiB
	path := filepath.Join(b.TempDir(), "f")
	if err := os.WriteFile(path, random(size), 0o644); err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		for err == nil {
			for done := int64(0); done < size && err == nil; {
				var n int
				n, err = sendfile(c.(*net.TCPConn), f, done, size-done)
				done += int64(n)
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	buf := make([]byte, 256<<10) // 256 KiB
	b.SetBytes(size)
	for b.Loop() {
		if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, io.LimitReader(c, size), buf); err != nil {
			b.Fatal(err)
		}
	}
}
