package proxy

import (
	"io"
	"net"
	"sync"
)

// relay copies between two connections until both ends have closed their side, or one failed. Then the other
// end must hear of a failure, too: an end would make what it has look complete.
func relay(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			from := &source{Reader: way[0]}
			_, err := io.Copy(way[1], from)
			switch {
			case from.err != nil:
				abort(a)
				abort(b)
			case err == nil:
				// If it fails, the end that takes nothing more may still answer, as after a Write.
				_ = way[1].(interface{ CloseWrite() error }).CloseWrite()
			}
		})
	}
	both.Wait()
}

// source notes the error of a Read, so that it is told from that of a Write.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.Reader.Read(b)
	if err != io.EOF {
		s.err = err
	}
	return n, err
}

// abort ends a connection so that its peer hears of a failure. A Unix socket has no way to say so.
func abort(c net.Conn) {
	switch c := c.(type) {
	case *net.TCPConn:
		_ = c.SetLinger(0) // it fails if c is closed
	case interface{ Abort() error }:
		_ = c.Abort() // it fails if c is closed
	}
	c.Close()
}
