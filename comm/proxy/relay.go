package proxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// relay copies between two connections until both ends have closed their side, or one failed. Then the other
// end must hear of a failure, too: an end would make what it has look complete.
func relay(a, b net.Conn) {
	ends := [2]*end{{Conn: a}, {Conn: b}}
	var both sync.WaitGroup
	for k, from := range ends {
		both.Go(func() {
			to := ends[1-k]
			_, err := io.Copy(to, from)
			switch {
			case from.failed:
				abort(a)
				abort(b)
			case err == nil:
				// If it fails, the end that takes nothing more may still answer, as after a Write.
				_ = to.Conn.(interface{ CloseWrite() error }).CloseWrite()
			}
		})
	}
	both.Wait()
}

// end is one of the two connections. A socket tells of a reset once: if it tells a Write, then a Read sees the same as
// at the end of a stream.
type end struct {
	net.Conn
	failed bool // a Read has; only who reads uses it

	// writing is held by a Write. It protects reset.
	writing sync.Mutex
	reset   bool // a Write of a socket has failed, and not because the peer takes nothing more
}

func (e *end) Read(b []byte) (int, error) {
	n, err := e.Conn.Read(b)
	if err == io.EOF && e.wasReset() {
		err = syscall.ECONNRESET
	}
	e.failed = err != nil && err != io.EOF
	return n, err
}

func (e *end) Write(b []byte) (int, error) {
	e.writing.Lock()
	defer e.writing.Unlock()
	n, err := e.Conn.Write(b)
	if _, socket := e.Conn.(syscall.Conn); socket && err != nil && !errors.Is(err, syscall.EPIPE) {
		e.reset = true
	}
	return n, err
}

// wasReset tells a reset from the end of a stream, which a Read has seen.
func (e *end) wasReset() bool {
	if !e.hungUp() {
		return false // a Write may wait for long
	}
	e.writing.Lock()
	defer e.writing.Unlock()
	return e.reset
}

// hungUp reports whether both ways of a socket are over (POLLHUP, poll(2)). Then no Write waits.
func (e *end) hungUp() bool {
	s, ok := e.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	p := make([]unix.PollFd, 1)
	_ = raw.Control(func(fd uintptr) { // it fails if e is closed
		p[0].Fd = int32(fd)
		_, err = unix.Poll(p, 0)
	})
	return err == nil && p[0].Revents&unix.POLLHUP != 0
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
