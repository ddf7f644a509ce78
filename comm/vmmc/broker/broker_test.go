package broker

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a broker until the test ends, and returns its socket.
func serve(t *testing.T, o Options) string {
	t.Helper()
	testwait.Bound(t)
	path := filepath.Join(t.TempDir(), "b")
	l, err := Listen(path, o.AllUsers)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- Serve(ctx, l, o) }()
	t.Cleanup(func() {
		cancel()
		if err := testwait.Receive(t, "the end of the broker", ended); err != nil {
			t.Error(err)
		}
	})
	return path
}

// pair returns the two ends of a socket that keeps message boundaries.
func pair(t *testing.T) (a, b *conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, end := range []**conn{&a, &b} {
		c, err := stream(fds[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		*end = newConn(c.(*net.UnixConn))
	}
	return a, b
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	t.Cleanup(cancel)
	return ctx
}

// exporter registers, and sends what it accepts.
func exporting(t *testing.T, path string, e Exporter) (accepted chan *Conn) {
	t.Helper()
	r, err := Register(within(t), path, e)
	if err != nil {
		t.Fatal(err)
	}
	accepted = make(chan *Conn, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := r.Accept()
			if err != nil {
				return
			}
			if c.Peer.UID != me() {
				t.Errorf("%+v connects", c.Peer)
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() { r.Close(); <-ended })
	return accepted
}

func me() uint32 { return uint32(os.Geteuid()) }

func TestDialConnectsTwoProcesses(t *testing.T) {
	path := serve(t, Options{})
	accepted := exporting(t, path, Exporter{Name: "x"})
	for range 3 {
		c, err := Dial(within(t), path, Target{UID: me(), Name: "x"})
		if err != nil {
			t.Fatal(err)
		}
		other := testwait.Receive(t, "a connection", accepted)
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		c.Close() // nobody else has a copy: the other end hears of it
		if got, err := io.ReadAll(other); string(got) != "hello" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		other.Close()
	}
}

func TestListTellsWhatProcessesTell(t *testing.T) {
	path := serve(t, Options{})
	if all, err := List(within(t), path); err != nil || all == nil || len(all) > 0 {
		t.Errorf("nobody: %v, %v", all, err)
	}
	stats := Stats{
		Exports: []ExportStats{{ID: 1, Bytes: 2, Importers: 3}, {ID: 2, Queued: 1}},
		Imports: []ImportStats{{Exporter: "unix:y", ID: 7, Shared: true, Sent: Sent{Sends: 1 << 40}}},
		Waiting: 1, PinnedBytes: 4096, Total: Totals{Refused: 2, Violations: 3},
	}
	exporting(t, path, Exporter{Name: "x", Stats: func() Stats { return stats }})
	r, err := Register(within(t), path, Exporter{Name: "stopped"}) // it never accepts
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for range 2 {
		all, err := List(within(t), path)
		want := []Process{
			{Name: "stopped", PID: os.Getpid(), UID: me(), Error: "it does not answer",
				Stats: Stats{Exports: []ExportStats{}, Imports: []ImportStats{}}},
			{Name: "x", PID: os.Getpid(), UID: me(), Stats: stats},
		}
		if err != nil || !reflect.DeepEqual(all, want) {
			t.Errorf("%+v, %v", all, err)
		}
	}
}

func TestNameIsFreeAfterTheEndOfItsProcess(t *testing.T) {
	path := serve(t, Options{})
	r, err := Register(within(t), path, Exporter{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Register(within(t), path, Exporter{Name: "x"}); !errors.Is(err, ErrRefused) {
		t.Errorf("a name that is taken: %v", err)
	}
	r.Close()
	testwait.Until(t, "the name is free", func() bool {
		r, err := Register(within(t), path, Exporter{Name: "x"})
		if err == nil {
			r.Close()
		}
		return err == nil
	})
}

func TestOnlyUsersThatTheExporterNamesConnect(t *testing.T) {
	testwait.Bound(t)
	b := newBroker(within(t), Options{})
	k := key{me() + 1, "x"}
	b.exporters[k] = newExporter(nil, k, new(user), 1, &message{Users: []uint32{me() + 2}})
	err := b.connect(b.ctx, nil, Origin{UID: me()}, k)
	if err == nil || !strings.Contains(err.Error(), "is not for user") {
		t.Errorf("another user: %v", err)
	}
}

func TestClientsAreLimited(t *testing.T) {
	path := serve(t, Options{MaxClientsOfUser: 2})
	for _, name := range []string{"a", "b"} {
		exporting(t, path, Exporter{Name: name, Stats: func() Stats { return Stats{} }})
	}
	if _, err := List(within(t), path); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "clients") {
		t.Errorf("one more: %v", err)
	}
}

func TestClientWithoutBrokerHearsSo(t *testing.T) {
	if _, err := List(within(t), filepath.Join(t.TempDir(), "b")); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
}

func TestNonsenseEndsItsConnectionAlone(t *testing.T) {
	path := serve(t, Options{})
	exporting(t, path, Exporter{Name: "x", Stats: func() Stats { return Stats{} }})
	for _, nonsense := range []string{"{", "[]", `{"kind":"nothing"}`, `{"kind":"register"}`, `{"kind":"done"}`,
		`{"kind":"dial","name":"` + strings.Repeat("x", 300) + `"}`, strings.Repeat(" ", maxMessage+1)} {
		c, err := net.Dial("unixpacket", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write([]byte(nonsense)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 1000)
		for err == nil { // an answer, and then the end
			var n int
			if n, err = c.Read(b); n > 0 && !strings.Contains(string(b[:n]), "refused") {
				t.Errorf("%.20s: %s", nonsense, b[:n])
			} else if n == 0 {
				break
			}
		}
		c.Close()
	}
	if all, err := List(within(t), path); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

func FuzzMessage(f *testing.F) {
	for _, s := range []string{
		`{"kind":"dial","uid":1,"name":"x"}`, `{"kind":"export","export":{"export":1}}`, `{"kind":"done","stats":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		var s Stats
		if _, err := s.add(&m); err != nil && !errors.Is(err, errMessage) {
			t.Error(err)
		}
	})
}
