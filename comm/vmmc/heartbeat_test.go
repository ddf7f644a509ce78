package vmmc

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/testwait"
)

// An exporter that accepts connections and says nothing holds up neither a context nor Close.
func TestSilentExporterHoldsNobodyUp(t *testing.T) {
	testwait.Bound(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	address := "tcp:" + l.Addr().String()
	n := openNode(t, Options{Token: testToken, Heartbeat: 2 * testwait.Limit}) // who waits for that takes too long
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := n.Import(ctx, 1, address); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	imports := []*Importing{n.ImportAsync(1, address), n.ImportAsync(2, address)} // one dials, the other waits for it
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	for _, i := range append(imports, n.ImportAsync(3, address)) {
		select {
		case <-i.Done():
		default:
			t.Error("an import goes on after Close")
		}
		if _, err := i.Result(); err == nil {
			t.Error("an import of a node that was closed succeeded")
		}
	}
}

// A peer that claims to bear no silence would have this node do nothing but ping.
func TestPeerMustBearSomeSilence(t *testing.T) {
	for bears, want := range map[time.Duration]error{
		0: protocol.ErrProtocol, minHeartbeat - time.Millisecond: protocol.ErrProtocol, minHeartbeat: io.EOF,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, peer := net.Pipe()
			go io.Copy(io.Discard, peer)
			go func() {
				hello := wire.Frame{Type: wire.Hello, Version: wire.Version, Count: uint64(bears.Milliseconds())}
				_, _ = peer.Write(wire.Append(nil, &hello))
				synctest.Wait() // until the stream reads on: a pipe whose other end is closed takes no deadline
				peer.Close()
			}()
			s := newStream(c, &Options{Heartbeat: testwait.Limit})
			s.read(func(*wire.Frame) error { return nil }, func(*wire.Frame) error { return nil })
			if err := s.reason(); !errors.Is(err, want) {
				t.Errorf("%v: %v", bears, err)
			}
		})
	}
}

// What follows runs in fake time: a peer that says nothing is gone after the heartbeat, to the nanosecond.
func TestSilentPeerIsGoneAfterTheHeartbeat(t *testing.T) {
	testwait.Bound(t)
	for _, greets := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, peer := net.Pipe()
			defer peer.Close()
			go io.Copy(io.Discard, peer)
			if greets {
				go peer.Write(wire.Append(nil, &wire.Frame{Type: wire.Hello, Version: wire.Version, Count: 9000}))
			}
			s := newStream(c, &Options{Heartbeat: 3 * time.Second})
			go s.write(nothing{})
			start := time.Now()
			s.read(func(*wire.Frame) error { return nil }, func(*wire.Frame) error { return nil })
			if took := time.Since(start); took != 3*time.Second || !errors.Is(s.gone(), ErrPeerGone) {
				t.Errorf("%v after %v", s.gone(), took)
			}
		})
	}
}

func TestPeerThatReadsNothingIsGoneAfterTheHeartbeat(t *testing.T) {
	testwait.Bound(t)
	synctest.Test(t, func(t *testing.T) {
		c, peer := net.Pipe() // without a buffer
		defer peer.Close()
		s := newStream(c, &Options{Heartbeat: 3 * time.Second})
		go s.read(func(*wire.Frame) error { return nil }, func(*wire.Frame) error { return nil })
		var talker sync.WaitGroup
		talker.Go(func() {
			frame := wire.Frame{Type: wire.Hello, Version: wire.Version, Count: 9000}
			for {
				if _, err := peer.Write(wire.Append(nil, &frame)); err != nil {
					return
				}
				time.Sleep(time.Second)
				frame = wire.Frame{Type: wire.Ping}
			}
		})
		start := time.Now()
		s.write(nothing{})
		took := time.Since(start)
		talker.Wait()
		if took != 3*time.Second || !errors.Is(s.gone(), ErrPeerGone) {
			t.Errorf("%v after %v", s.gone(), took)
		}
	})
}

func TestIdlePeersStayConnected(t *testing.T) {
	testwait.Bound(t)
	stayConnected(t, func(c net.Conn) net.Conn { return c })
}

// That this process was stopped is no silence of its peer: what it said meanwhile is there.
func TestStopOfThisProcessIsNoSilence(t *testing.T) {
	testwait.Bound(t)
	stayConnected(t, func(c net.Conn) net.Conn { return &stopped{Conn: c} })
}

// stayConnected fails if one of two idle peers takes the other for gone. The connection of the first is as end says.
func stayConnected(t *testing.T, end func(net.Conn) net.Conn) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		// One bears more silence than the other.
		first := newStream(end(a), &Options{Heartbeat: 2 * time.Second})
		second := newStream(b, &Options{Heartbeat: 90 * time.Second})
		for _, s := range []*stream{first, second} {
			go s.write(nothing{})
			go s.read(func(*wire.Frame) error { return nil }, func(*wire.Frame) error { return nil })
		}
		time.Sleep(time.Hour + time.Millisecond) // no ping meets the end: the pipe would say io.ErrClosedPipe
		if err := errors.Join(first.reason(), second.reason()); err != nil {
			t.Error(err)
		}
		first.bye()
		<-first.ended
		<-second.ended
		if err := second.reason(); !closedByPeer(err) {
			t.Error(err)
		}
	})
}

// stopped is a connection of a process that is stopped in its first read and its first write, which begin together.
type stopped struct {
	net.Conn
	read, write sync.Once
}

// stop is longer than the first peer bears, and shorter than the second does.
const stop = 10 * time.Second

func (c *stopped) Read(b []byte) (int, error) {
	c.read.Do(func() { time.Sleep(stop) })
	return c.Conn.Read(b)
}

func (c *stopped) Write(b []byte) (int, error) {
	c.write.Do(func() { time.Sleep(stop) })
	return c.Conn.Write(b)
}
