//go:build linux && cgo

package rc_test

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/rdma"
	"pinwheel/verbs/rdma/rc"
	"pinwheel/verbs/rdma/rdmatest"
)

// The tests of this file run on both nodes of the test bed at the same time
// (`make test-guests`): node 0 serves, node 1 drives.

const (
	driver = "1"
	port   = "18515"
)

// needTwoNodes returns whether this is the driver, and a socket to the other node.
func needTwoNodes(t *testing.T) (drives bool, sock net.Conn) {
	t.Helper()
	if os.Getenv("TESTBED_NODES") != "2" {
		t.Skip("needs the two nodes of the test bed (run `make test-guests`)")
	}
	rdmatest.Need(t)
	drives = os.Getenv("TESTBED_NODE") == driver
	var err error
	if drives {
		sock, err = dial(peerAddr())
	} else {
		sock, err = acceptPeer()
	}
	if err != nil {
		t.Fatal(err)
	}
	return drives, sock
}

func acceptPeer() (net.Conn, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(os.Getenv("TESTBED_ADDR"), port))
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, err
	}
	return listener.Accept()
}

func peerAddr() string { return net.JoinHostPort(os.Getenv("TESTBED_PEER"), port) }

// dial waits for the other side to boot, or to get as far as listening.
func dial(addr string) (sock net.Conn, err error) {
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(50 * time.Millisecond) {
		if sock, err = net.DialTimeout("tcp", addr, time.Second); err == nil {
			return sock, nil
		}
	}
	return nil, err
}

// What the driver asks of the server.
const (
	opOffer  = iota + 1 // acquire a piece for a write, and say where it is
	opCheck             // that piece must hold the seed's bytes now; release it
	opFilled            // acquire a piece holding the seed's bytes, and say where it is
	opDone              // release it
	opBye
)

// message is a request or its answer, in a registered buffer on both sides.
type message struct {
	Op, Offset, Bytes, Seed uint64
	Addr, RKey              uint64
	Right                   bool
}

// mailbox sends and receives messages, one at a time.
type mailbox struct {
	t       *testing.T
	c       *rc.Conn
	out, in buffer
}

func newMailbox(t *testing.T, c *rc.Conn, p verbs.Provider) *mailbox {
	m := &mailbox{t, c, newBuffer(t, p, mem.PageSize), newBuffer(t, p, mem.PageSize)}
	m.listen()
	return m
}

const (
	idOut = 1 << 32
	idIn  = 2 << 32
)

func (m *mailbox) listen() {
	if err := m.c.Receive(idIn, m.in.local()); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mailbox) send(msg message) {
	m.t.Helper()
	n, err := binary.Encode(m.out.b, binary.BigEndian, msg)
	if err != nil {
		m.t.Fatal(err)
	}
	l := m.out.local()
	l.Range.End = l.Range.Start + mem.Addr(n)
	if err := m.c.Send(idOut, l); err != nil {
		m.t.Fatal(err)
	}
}

// receive waits for the message that answers, or follows, the one just sent.
func (m *mailbox) receive(sent bool) (msg message) {
	m.t.Helper()
	for got := false; !got || sent; {
		done := must(m.t, m.c, nil)
		got = got || done.ID == idIn
		sent = sent && done.ID != idOut
	}
	if _, err := binary.Decode(m.in.b, binary.BigEndian, &msg); err != nil {
		m.t.Fatal(err)
	}
	m.listen()
	return msg
}

func (m *mailbox) ask(msg message) message {
	m.t.Helper()
	m.send(msg)
	return m.receive(true)
}

// TestTwoNodesBytesAreRight is TestBytesAreRightThroughCachedRegions across
// machines: each side checks what it has received.
func TestTwoNodesBytesAreRight(t *testing.T) {
	drives, sock := needTwoNodes(t)
	p := rdmatest.Open(t)
	s := newSide(t, p)
	c := connect(t, sock, p)
	if c == nil {
		t.FailNow()
	}
	m := newMailbox(t, c, p)
	if drives {
		drive(t, m, s)
	} else {
		serve(t, m, s)
	}
	t.Logf("%+v", s.cache.Stats())
}

func drive(t *testing.T, m *mailbox, s *side) {
	times := 10_000 // three messages and a transfer each
	if testing.Short() {
		times = 2_000
	}
	rng := rand.New(rand.NewPCG(2011, 5))
	for i := range times {
		n := 1 + rng.Uint64N(1<<rng.UintN(15)) // up to 16 KiB
		here, offset, seed := place(rng, n), place(rng, n), rng.Uint64()
		mine, r := s.b[here:here+n], part(s.r, here, n)
		if rng.IntN(2) == 0 {
			fill(mine, seed)
			ref := s.acquire(t, r, 0)
			at := m.ask(message{Op: opOffer, Offset: offset, Bytes: n})
			must(t, m.c, m.c.Write(uint64(i), rc.Local{Range: r, LKey: ref.LKey()},
				rc.Remote{Addr: at.Addr, RKey: uint32(at.RKey)}))
			s.cache.Release(ref)
			if !m.ask(message{Op: opCheck, Offset: offset, Bytes: n, Seed: seed}).Right {
				t.Fatalf("write %d of %d bytes to offset %d: the other node has wrong bytes", i, n, offset)
			}
		} else {
			ref := s.acquire(t, r, verbs.AccessLocalWrite)
			at := m.ask(message{Op: opFilled, Offset: offset, Bytes: n, Seed: seed})
			must(t, m.c, m.c.Read(uint64(i), rc.Local{Range: r, LKey: ref.LKey()},
				rc.Remote{Addr: at.Addr, RKey: uint32(at.RKey)}))
			s.cache.Release(ref)
			m.ask(message{Op: opDone})
			want := make([]byte, n)
			if fill(want, seed); !bytes.Equal(mine, want) {
				t.Fatalf("read %d of %d bytes from offset %d: wrong bytes", i, n, offset)
			}
		}
		s.disturb(t, rng)
	}
	m.send(message{Op: opBye})
	must(t, m.c, nil)
}

func serve(t *testing.T, m *mailbox, s *side) {
	rng := rand.New(rand.NewPCG(2011, 6))
	msg := m.receive(false)
	for ; msg.Op != opBye; msg = m.receive(true) {
		piece := s.b[msg.Offset : msg.Offset+msg.Bytes]
		switch msg.Op {
		case opFilled:
			fill(piece, msg.Seed)
			fallthrough
		case opOffer:
			ref := s.acquire(t, part(s.r, msg.Offset, msg.Bytes), both)
			s.lent = ref
			msg.Addr, msg.RKey = uint64(s.r.Start)+msg.Offset, uint64(ref.RKey())
		case opCheck:
			want := make([]byte, msg.Bytes)
			fill(want, msg.Seed)
			msg.Right = bytes.Equal(piece, want)
			fallthrough
		case opDone:
			s.cache.Release(s.lent)
			s.disturb(t, rng)
		}
		m.send(msg)
	}
}

// TestTwoNodesKilledPeer: a process of node 1 is killed while node 0 has
// receives outstanding; node 0 notices and unpins.
func TestTwoNodesKilledPeer(t *testing.T) {
	drives, sock := needTwoNodes(t)
	defer sock.Close()
	if drives {
		_ = sock.Close() // the child makes its own
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), victimEnv+"="+peerAddr())
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, err = out.Read(make([]byte, 1)) // it is connected
		if err != nil {
			t.Errorf("the victim did not connect: %v", err)
		}
		time.Sleep(100 * time.Millisecond) // the other side has posted, most likely; either way it must notice
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // "signal: killed"
		return
	}
	before := footprintOf(t)
	victimSock, err := acceptPeer()
	if err != nil {
		t.Fatal(err)
	}
	p, err := rdma.Open(rdma.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := connect(t, victimSock, p)
	if c == nil {
		t.FailNow()
	}
	here := newBuffer(t, p, 1<<20)
	for i := range uint64(10) {
		if err := c.Receive(i, here.local()); err != nil {
			t.Fatal(err)
		}
	}
	must(t, c, nil) // its first message
	leavesNothing(t, c, p, 9, before)
}
