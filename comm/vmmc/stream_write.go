package vmmc

import (
	"crypto/tls"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/wire"
)

// messages gives the writer of a stream the messages to send.
type messages interface {
	// next appends a message to b, if there is one and no frame is queued before it.
	next(b []byte) []byte
	// written says that what next appended has been sent out.
	written()
}

// nothing is for a stream on which only frames are sent.
type nothing struct{}

func (nothing) next(b []byte) []byte { return b }
func (nothing) written()             {}

// write writes what is queued and what from has, and pings, until the stream ends.
func (s *stream) write(from messages) {
	w := &writer{s: s, buf: make([]byte, 0, wire.MaxChunk+4<<10)} // and 4 KiB for frames
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		s.mu.Lock()
		control, ack, ending, ping := s.control, s.ack, s.ending, s.ping
		s.control = nil
		s.mu.Unlock()
		if ack != w.acked {
			w.acked = ack
			w.append(&wire.Frame{Type: wire.Ack, Count: ack}, nil)
		}
		for i := range control {
			w.append(&control[i].frame, control[i].fds)
		}
		if len(control) == 0 && !ending {
			w.buf = from.next(w.buf)
		}
		idle := len(w.buf) == 0 && len(control) == 0
		w.flush()
		if w.err != nil {
			s.fail(w.err)
			return
		}
		from.written()
		if !idle {
			continue
		}
		if ending {
			s.fail(ErrClosed)
			return
		}
		timer.Reset(ping)
		select {
		case <-s.wake:
		case <-timer.C:
			s.send(&wire.Frame{Type: wire.Ping}, nil)
		case <-s.ended:
			return
		}
	}
}

// writer gathers frames and writes them at once. After its first error it writes nothing.
type writer struct {
	s     *stream
	buf   []byte
	acked uint64
	err   error
}

// append adds a frame. Descriptors go out with its first byte, and are closed.
func (w *writer) append(f *wire.Frame, fds []int) {
	if len(fds) == 0 {
		if w.buf = wire.Append(w.buf, f); len(w.buf) > 32<<10 { // 32 KiB: enough for one system call
			w.flush()
		}
		return
	}
	defer closeAll(fds)
	if w.flush(); w.err != nil {
		return
	}
	c := w.s.conn.(interface {
		WriteMsgUnix(b, oob []byte, addr *net.UnixAddr) (n, oobn int, err error)
	})
	b, rights := wire.Append(nil, f), unix.UnixRights(fds...)
	w.wait(func() (bool, error) {
		n, _, err := c.WriteMsgUnix(b, rights, nil)
		return n > 0, err
	})
}

func (w *writer) flush() {
	if b := w.buf; len(b) > 0 {
		w.wait(func() (bool, error) {
			n, err := w.s.conn.Write(b)
			b = b[n:]
			return len(b) == 0, err
		})
	}
	w.buf = w.buf[:0]
}

// wait makes a call that writes, unless one failed before. A peer that does not take all of it for as long as it may be
// silent is gone.
func (w *writer) wait(write func() (done bool, err error)) {
	if w.err != nil {
		return
	}
	parts := time.Duration(waits)
	if _, ok := w.s.conn.(*tls.Conn); ok {
		parts = 1 // after its first deadline it writes nothing more
	}
	w.err = w.s.wait(w.s.conn.SetWriteDeadline, parts, write)
}
