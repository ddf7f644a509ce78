package vmmc

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/limit"
	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/testwait"
)

func quiet(string) {}

func TestStrangersSilenceOnlyEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		n := &Node{opt: Options{Warn: func(m string) { lines = append(lines, m) }}}
		for range 3 * limit.PerMinute {
			n.warnOfPeer("a stranger")
		}
		n.warn("a panic")
		if len(lines) != limit.PerMinute+1 || lines[limit.PerMinute] != "a panic" {
			t.Errorf("warned %q", lines)
		}
		time.Sleep(time.Minute)
		n.warnOfPeer("another stranger")
		if last := lines[len(lines)-1]; last != "another stranger" {
			t.Errorf("after a minute: %q", last)
		}
	})
}

func TestBadOptionsAreRefused(t *testing.T) {
	c := certificateOf(t, "a")
	for what, o := range map[string]Options{
		"a short token":                     {Token: "secret"},
		"a certificate without authorities": {Certificate: &c},
		"authorities without a certificate": {Authorities: testAuthority.pool},
		"a token and a certificate":         {Certificate: &c, Authorities: testAuthority.pool, Token: testToken},
		"a long name":                       {Name: strings.Repeat("n", 256)},
		"a heartbeat of a nanosecond":       {Heartbeat: 1},
		"no path":                           {Listen: []string{"unix:"}},
		"no such network":                   {Listen: []string{"udp:127.0.0.1:1"}},
		"no port":                           {Listen: []string{"tcp:127.0.0.1"}},
	} {
		if _, err := Open(o); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestNodeLeavesFilesAtItsAddressAlone(t *testing.T) {
	testwait.Bound(t)
	address := socket(t)
	_, path, _ := strings.Cut(address, ":")
	if err := os.WriteFile(path, []byte("a thesis"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Listen: []string{address}}); !errors.Is(err, unix.EADDRINUSE) {
		t.Errorf("it listens: %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "a thesis" {
		t.Errorf("the file has %q, %v", b, err)
	}
}

// intruder speaks the protocol by itself, and has import 1 of an export of 100 bytes.
func intruder(t *testing.T, address string) net.Conn {
	_, path, _ := strings.Cut(address, ":")
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	b := wire.Append(nil, &wire.Frame{Type: wire.Hello, Version: wire.Version, Count: 1 << 40, Name: "sender"})
	b = wire.Append(b, &wire.Frame{Type: wire.Import, Number: 1, Export: 1})
	if _, err := c.Write(b); err != nil {
		t.Fatal(err)
	}
	for r := wire.NewReader(c); ; {
		f, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		if f.Type == wire.Grant {
			return c
		}
	}
}

func TestPeersThatBreakTheRulesLoseTheirConnectionAndNothingElseHappens(t *testing.T) {
	notify := wire.Append(nil, &wire.Frame{Type: wire.Notify, Number: 1})
	data := func(number, offset, bytes uint64) []byte {
		b := wire.Append(nil, &wire.Frame{Type: wire.Data, Number: number, Offset: offset, Bytes: bytes})
		return append(b, strings.Repeat("!", int(min(bytes, wire.MaxChunk)))...)
	}
	for what, b := range map[string][]byte{
		"a byte beyond":       data(1, 100, 1),
		"a byte too many":     data(1, 0, 101),
		"an overflow":         data(1, ^uint64(0), 2),
		"another's import":    data(2, 0, 1),
		"after the release":   append(wire.Append(nil, &wire.Frame{Type: wire.Release, Number: 1}), data(1, 0, 1)...),
		"no credit":           slices.Concat(notify, notify),
		"an exporter's frame": wire.Append(nil, &wire.Frame{Type: wire.Revoke, Number: 1}),
		"a second hello":      wire.Append(nil, &wire.Frame{Type: wire.Hello, Version: wire.Version}),
		"no frame":            []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		t.Run(what, func(t *testing.T) {
			warned := make(chan string, 9)
			w := transports[1].begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
			around := w.memory(t, 300)
			e := w.export(t, 1, around[100:200], sender, ExportOptions{Queue: 1})
			e.Block()
			other := w.imports(t, 1)
			c := intruder(t, w.address)
			if _, err := c.Write(b); err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, c); err != nil && !closedByPeer(err) {
				t.Error(err)
			}
			if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, `"sender"`) {
				t.Errorf("warned %q", m)
			}
			if strings.Contains(string(around), "!") {
				t.Error("something was written")
			}
			send(t, other, "fine", 96, SendOptions{})
			arrives(t, around, 196, "fine")
		})
	}
}

// A peer that asks and does not listen takes a bounded amount of memory.
func TestPeerThatDoesNotReadAnswersIsEnded(t *testing.T) {
	testwait.Bound(t)
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	s := newStream(a, &Options{Heartbeat: time.Hour})
	for range maxControl {
		s.send(&wire.Frame{Type: wire.Deny}, nil)
	}
	if err := s.reason(); !errors.Is(err, protocol.ErrProtocol) || len(s.control) > 0 {
		t.Errorf("%v, with %d frames", err, len(s.control))
	}
}

// A peer that acknowledges nothing takes a bounded amount of memory, too.
func TestMessagesThatAreNotAcknowledgedAreLimited(t *testing.T) {
	w := transports[1].begin(t)
	_, _, i := w.pair(t, 10, ExportOptions{})
	l := i.link
	never := newOp(i, nil, 0, SendOptions{})
	never.last = 1 << 62
	l.mu.Lock()
	for range maxUnacked {
		l.unacked = append(l.unacked, never)
	}
	l.mu.Unlock()
	if _, err := i.SendAsync([]byte("x"), 0, SendOptions{}); !errors.Is(err, ErrTooManyOps) {
		t.Error(err)
	}
}

// Acknowledgements come also while there is always another message.
func TestMessagesInARowAreAcknowledged(t *testing.T) {
	testwait.Bound(t)
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	s := newStream(a, &Options{Heartbeat: time.Hour})
	go b.Write(make([]byte, 100))
	if _, err := s.in.Peek(1); err != nil {
		t.Fatal(err)
	}
	for s.arrived = 1; s.arrived < ackEvery; s.arrived++ {
		if s.acknowledge(); s.ack != 0 {
			t.Fatalf("the first %d were acknowledged at once", s.ack)
		}
	}
	if s.acknowledge(); s.ack != ackEvery {
		t.Errorf("%d of %d were acknowledged", s.ack, s.arrived)
	}
}

func TestConnectionsAreLimited(t *testing.T) {
	warned := make(chan string, 9)
	w := transports[0].begin(t, func(o *Options) { o.MaxConnections, o.Warn = 1, func(m string) { warned <- m } })
	w.export(t, 1, w.memory(t, 10), sender, ExportOptions{})
	w.imports(t, 1)
	_, path, _ := strings.Cut(w.address, ":")
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := io.Copy(io.Discard, c); n != 0 || err != nil && !closedByPeer(err) {
		t.Errorf("%d bytes, %v", n, err)
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "1 already") {
		t.Errorf("warned %q", m)
	}
	if err := w.importer.Close(); err != nil {
		t.Fatal(err)
	}
	another := w.node(t, "sender") // finds the place free, soon
	if _, err := another.Import(testContext(t), 1, w.address); err != nil {
		t.Error(err)
	}
}

// An exporter can't make an importer map memory that may vanish, nor memory that is too short.
func TestImportedMemoryIsChecked(t *testing.T) {
	fd, err := newMemfd(8192)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mapImported(fd, 4096, 4097); !errors.Is(err, ErrBounds) {
		t.Errorf("a byte beyond the end: %v", err)
	}
	fd, err = unix.MemfdCreate("unsealed", unix.MFD_CLOEXEC)
	if err == nil {
		err = unix.Ftruncate(fd, 8192)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := mapImported(fd, 0, 100); err == nil {
		t.Error("a file that can shrink was mapped")
	}
	var v protocol.Identity
	v.UID = unknownUID
	if p := (&Permissions{Peers: []string{""}}); p.permits(v) {
		t.Error("a peer without a name was permitted")
	}
	if p := (&Permissions{UIDs: []uint32{0, 1<<32 - 1}}); p.permits(v) {
		t.Error("a user who is not known was permitted")
	}
}

// Those who connect and prove nothing take no place of those who do.
func TestStrangersKeepNobodyOut(t *testing.T) {
	w := transports[2].begin(t, func(o *Options) { o.MaxConnections, o.Warn = 1, quiet })
	w.export(t, 1, w.memory(t, 10), sender, ExportOptions{})
	_, address, _ := strings.Cut(w.address, ":")
	strangers := make([]net.Conn, maxHandshakes+1)
	for k := range strangers {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		strangers[k] = c
	}
	if _, err := w.importer.Import(testContext(t), 1, w.address); err != nil {
		t.Fatal(err)
	}
	if n := w.exporter.handshakes.Len(); n > maxHandshakes {
		t.Errorf("%d handshakes at a time", n)
	}
	for _, c := range strangers {
		c.Close()
	}
	testwait.Until(t, "all strangers are forgotten", func() bool {
		w.exporter.mu.Lock()
		defer w.exporter.mu.Unlock()
		return w.exporter.handshakes.Len() == 0 && w.exporter.accepted == 1
	})
}

func TestStrangerWhoSaysNothingIsClosed(t *testing.T) {
	testwait.Bound(t)
	o := Options{Token: testToken, Listen: []string{"tcp:127.0.0.1:0"}, Heartbeat: 20 * time.Millisecond}
	n := openNode(t, o)
	_, address, _ := strings.Cut(n.Addresses()[0], ":")
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := io.Copy(io.Discard, c); n != 0 || err != nil && !closedByPeer(err) {
		t.Errorf("%d bytes, %v", n, err)
	}
}
