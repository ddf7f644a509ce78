package vmmc

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
)

// errBye ends a stream whose peer closes.
var errBye = errors.New("the peer closes")

// stream carries frames over one connection. One goroutine reads, and one writes. The reader never waits
// for the writer, so two nodes that send to each other don't wait in a circle.
type stream struct {
	conn    net.Conn
	in      *bufio.Reader
	frames  *wire.Reader  // of in
	silence time.Duration // of the peer, after which it is gone
	arrived uint64        // messages of the peer; only the reader uses it
	keeps   bool          // fail leaves the connection open: whoever set this calls hangUp

	// mu is a leaf.
	mu      sync.Mutex
	control []outgoing
	ack     uint64 // what the peer should hear of arrived
	ping    time.Duration
	ending  bool  // close once all is written
	err     error // why it ended; set once

	wake  chan struct{} // the writer should look; capacity 1
	ended chan struct{} // closed with err
}

// outgoing is a frame to be written. Its descriptors go along with it, and are closed.
type outgoing struct {
	frame wire.Frame
	fds   []int
}

// newStream takes over c, and says who this node is.
func newStream(c net.Conn, o *Options) *stream {
	s := &stream{
		conn: c, silence: o.Heartbeat, ping: o.Heartbeat / 4, wake: make(chan struct{}, 1), ended: make(chan struct{}),
	}
	s.in = bufio.NewReaderSize(reading{s}, 16<<10) // 16 KiB; longer reads go past it
	s.frames = wire.NewReader(s.in)
	bears := uint64(o.Heartbeat.Milliseconds())
	s.send(&wire.Frame{Type: wire.Hello, Version: wire.Version, Name: o.Name, Count: bears}, nil)
	return s
}

// maxControl is how many frames may be queued: a peer that asks for more answers than it reads is ended.
const maxControl = 1 << 16

var errNotRead = fmt.Errorf("%w: it does not read what it asked for", protocol.ErrProtocol)

// reading bounds each read of a stream by the silence that it bears.
type reading struct{ s *stream }

func (r reading) Read(b []byte) (n int, err error) {
	err = r.s.wait(r.s.conn.SetReadDeadline, waits, func() (bool, error) {
		var err error
		n, err = r.s.conn.Read(b)
		return n > 0, err
	})
	return n, err
}

// waits is in how many parts a stream waits for its peer. A stop of this process, or of the machine that both share,
// takes up one of them. With one deadline it would end the stream before either side had its turn again: to read what
// is there already, or to ping.
const waits = 4

// wait makes a call that waits for the peer, and makes it again until it is done, fails, or was cut short by a deadline
// in each part of the silence that the stream bears.
func (s *stream) wait(deadline func(time.Time) error, parts time.Duration, call func() (bool, error)) (err error) {
	for range parts {
		if err = s.bound(deadline, s.silence/parts); err != nil {
			return err
		}
		var done bool
		if done, err = call(); done || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return err
}

// bound sets a deadline for the next call, unless the stream has ended: then fail has set its own.
func (s *stream) bound(set func(time.Time) error, after time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return set(time.Now().Add(after))
}

// send queues a frame. It never blocks. Descriptors that go along are the stream's from now on.
func (s *stream) send(f *wire.Frame, fds []int) {
	s.mu.Lock()
	over := s.ending || s.err != nil
	full := len(s.control) >= maxControl
	if !over && !full {
		s.control = append(s.control, outgoing{*f, fds})
	}
	s.mu.Unlock()
	switch {
	case over:
		closeAll(fds)
	case full:
		closeAll(fds)
		s.fail(errNotRead)
	default:
		s.stir()
	}
}

// stir makes the writer look for something to write.
func (s *stream) stir() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// ackEvery is how many messages arrive at most before the peer hears of one.
const ackEvery = 64

// acknowledge tells the peer which of its messages have arrived, unless the next one is here already: then it
// waits for some more. Only the reader calls it, and changes ack.
func (s *stream) acknowledge() {
	if s.in.Buffered() > 0 && s.arrived-s.ack < ackEvery {
		return
	}
	s.mu.Lock()
	news := s.ack != s.arrived
	s.ack = s.arrived
	s.mu.Unlock()
	if news {
		s.stir()
	}
}

// bye closes the connection after what is queued has been written.
func (s *stream) bye() {
	s.send(&wire.Frame{Type: wire.Bye}, nil)
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.stir()
}

// fail ends the stream at once. Only the first reason counts.
func (s *stream) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.err = err
	for _, o := range s.control {
		closeAll(o.fds)
	}
	s.control = nil
	if s.keeps {
		_ = s.conn.SetDeadline(time.Unix(1, 0)) // the reader and the writer end; it fails for no connection that is open
	} else {
		s.hangUp()
	}
	close(s.ended)
}

// hangUp closes the connection.
func (s *stream) hangUp() {
	if t, ok := s.conn.(*tls.Conn); ok {
		t.NetConn().Close() // a closing alert would wait for a peer that reads nothing
	} else {
		s.conn.Close()
	}
}

// idle tells whether no frame is queued.
func (s *stream) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.control) == 0
}

// reason is why the stream ended.
func (s *stream) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// closedByPeer tells whether the peer closed a connection, or its kernel did when it died. Then it writes
// nothing into shared memory any more: a node hangs up last, and the kernel takes the memory of a process
// first, then its files.
func closedByPeer(err error) bool {
	return errors.Is(err, errBye) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// gone makes the error that callers get of the reason why a stream ended.
func (s *stream) gone() error {
	err := s.reason()
	var timeout net.Error
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, ErrIdentity):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("it closed the connection")
	case errors.As(err, &timeout) && timeout.Timeout():
		err = fmt.Errorf("silent for %v", s.silence)
	}
	return fmt.Errorf("%w: %w", ErrPeerGone, err)
}

// read reads frames until one fails or handle does, and ends the stream. The first frame is the peer's Hello.
func (s *stream) read(hello, handle func(*wire.Frame) error) {
	err := s.greet(hello)
	for err == nil {
		var f wire.Frame
		if f, err = s.frames.Read(); err != nil {
			break
		}
		switch f.Type {
		case wire.Ping:
		case wire.Bye:
			err = errBye
		default:
			err = handle(&f)
		}
		s.acknowledge()
	}
	s.fail(err)
}

func (s *stream) greet(hello func(*wire.Frame) error) error {
	f, err := s.frames.Read()
	if err != nil {
		return err
	}
	if f.Type != wire.Hello || f.Version != wire.Version {
		return fmt.Errorf("%w: it speaks version %d of the protocol, not %d", ErrIdentity, f.Version, wire.Version)
	}
	bears := time.Duration(min(f.Count, uint64(time.Hour.Milliseconds()))) * time.Millisecond
	if bears < minHeartbeat { // it would have this node do nothing but ping
		return fmt.Errorf("%w: it bears %v of silence, and %v is the least", protocol.ErrProtocol, bears, minHeartbeat)
	}
	s.mu.Lock()
	s.ping = min(s.ping, bears/4)
	s.mu.Unlock()
	s.stir()
	return hello(&f)
}
