package vmmc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/broker/brokertest"
	"pinwheel/internal/testwait"
)

// If the daemon dies, established transfers go on, and new imports fail at once. When it is back, exporters have
// their names again.
func TestEndOfTheBrokerEndsNoTransfer(t *testing.T) {
	testwait.Bound(t)
	path := filepath.Join(t.TempDir(), "b")
	stop := brokertest.Serve(t, path, broker.Options{AllUsers: true})
	warned := make(chan string, 10)
	exporter := openNode(t, Options{Broker: path, Listen: []string{"node:receiver"}, Warn: func(m string) { warned <- m }})
	memory, err := exporter.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	uids := Permissions{UIDs: []uint32{uint32(os.Geteuid())}}
	for id := range uint32(2) {
		m := memory
		if id > 0 {
			m = make([]byte, 100) // through the connection
		}
		if _, err := exporter.Export(id, m, uids, ExportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	importer := openNode(t, Options{Broker: path})
	i, err := importer.Import(testContext(t), 0, "node:receiver")
	if err != nil || !i.Shared() {
		t.Fatal(i, err)
	}
	stop()
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "until it is back") {
		t.Errorf("warned: %s", m)
	}
	send(t, i, "goes on", 0, SendOptions{Notify: true})
	arrives(t, memory, 0, "goes on")
	if _, err := importer.Import(testContext(t), 1, "node:receiver"); err != nil {
		t.Errorf("over the connection that is there: %v", err)
	}
	late := openNode(t, Options{Broker: path})
	_, err = late.Import(testContext(t), 0, "node:receiver")
	if !errors.Is(err, ErrNoBroker) || strings.Contains(err.Error(), "\n") {
		t.Errorf("a new import: %v", err)
	}
	brokertest.Serve(t, path, broker.Options{AllUsers: true})
	if _, err = late.Import(testContext(t), 0, "node:receiver"); err != nil {
		t.Errorf("after the broker is back: %v", err)
	}
	if len(warned) > 0 {
		t.Errorf("warned again: %s", <-warned)
	}
}

// A connection that can't be taken, for want of a descriptor say, costs this node neither its name nor a warning that
// the broker is gone.
func TestLostConnectionCostsNoName(t *testing.T) {
	testwait.Bound(t)
	path := filepath.Join(t.TempDir(), "b")
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Net: "unixpacket", Name: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	requests := make(chan string, 10)
	go func() { // a broker
		b := make([]byte, 1000)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			n, _ := c.Read(b)
			requests <- string(b[:n])
			for _, m := range []string{
				`{"kind":"connected"}`, `{"kind":"connect","from":{}}`, `{"kind":"describe","question":7}`,
			} {
				_, _ = c.Write([]byte(m))
			}
			n, _ = c.Read(b)
			requests <- string(b[:n])
		}
	}()
	warned := make(chan string, 10)
	openNode(t, Options{Broker: path, Listen: []string{"node:x"}, Warn: func(m string) { warned <- m }})
	for _, want := range []string{`"register"`, `"question":7`} {
		if got := testwait.Receive(t, "a message", requests); !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "was lost") || len(warned) > 0 {
		t.Errorf("warned: %s; %d more", m, len(warned))
	}
}

// Early imports wait at the broker for an exporter that is not there (§5.3).
func TestImportWaitsForAnExporterThatHasNoNameYet(t *testing.T) {
	testwait.Bound(t)
	address := brokerName(t)
	importer := openNode(t, Options{Broker: brokertest.Socket})
	early := importer.ImportAsync(3, address)
	exporter := openNode(t, Options{Broker: brokertest.Socket, Listen: []string{address}})
	p := Permissions{UIDs: []uint32{uint32(os.Geteuid())}}
	if _, err := exporter.Export(3, make([]byte, 10), p, ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := early.Result(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	never := make(chan error)
	go func() { _, err := importer.Import(ctx, 3, brokerName(t)); never <- err }()
	cancel()
	if err := testwait.Receive(t, "the end of the import", never); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestNamesAtTheBroker(t *testing.T) {
	testwait.Bound(t)
	address := brokerName(t)
	openNode(t, Options{Broker: brokertest.Socket, Listen: []string{address}})
	if _, err := Open(Options{Broker: brokertest.Socket, Listen: []string{address}}); !errors.Is(err, broker.ErrRefused) {
		t.Errorf("a name that is taken: %v", err)
	}
	for _, bad := range []string{
		"node:", "node:me/x", "node:1/", "node:x@host", fmt.Sprintf("node:%d/x", os.Geteuid()+1), "node:x@host:1",
		"node:" + strings.Repeat("x", 256),
	} {
		if _, err := Open(Options{Broker: brokertest.Socket, Listen: []string{bad}}); !errors.Is(err, ErrAddress) {
			t.Errorf("%.20s: %v", bad, err)
		}
	}
}

func TestStatsTellWhatIsExportedAndImported(t *testing.T) {
	for _, tr := range []transport{transports[0], transports[1]} {
		t.Run(tr.name, func(t *testing.T) {
			w := tr.begin(t)
			_, e, i := w.pair(t, 1000, ExportOptions{})
			e.Block()
			send(t, i, "12345", 0, SendOptions{Notify: true})
			send(t, i, "12", 0, SendOptions{Notify: true})
			testwait.Until(t, "two notifications", func() bool { return w.exporter.Stats().Exports[0].Queued == 2 })
			waits := w.importer.ImportAsync(9, w.address)
			testwait.Until(t, "the import waits", func() bool { return w.exporter.Stats().Waiting == 1 })
			waits.Cancel()
			stranger := w.node(t, "stranger")
			if _, err := stranger.Import(testContext(t), 1, w.address); !errors.Is(err, ErrNotPermitted) {
				t.Error(err)
			}
			s := w.exporter.Stats()
			want := broker.ExportStats{ID: 1, Bytes: 1000, Importers: 1, Queued: 2}
			want.Notifications = 2
			if i.Shared() {
				want.Sharing = 1
			} else {
				want.ReceivedBytes = 7
			}
			if len(s.Exports) != 1 || s.Exports[0] != want || s.Total.Refused != 1 || s.Total.Received != want.Received {
				t.Errorf("%+v", s)
			}
			s = w.importer.Stats()
			sent := broker.ImportStats{Exporter: w.address, ID: 1, Bytes: 1000, Shared: i.Shared()}
			sent.Sends, sent.SentBytes = 2, 7
			if len(s.Imports) != 1 || s.Imports[0] != sent {
				t.Errorf("%+v", s)
			}
			if _, err := e.UnexportAsync(); err != nil {
				t.Fatal(err)
			}
			<-i.Done()
			if s = w.importer.Stats(); len(s.Imports) > 0 || s.Total.Sent != sent.Sent {
				t.Errorf("after the end: %+v", s)
			}
		})
	}
}

// nobody is a user that owns nothing.
const nobody = 65534

// strange is a process of another user. It imports and sends through the broker at a path.
func strange(path string) error {
	if err := syscall.Setuid(nobody); err != nil {
		return err
	}
	n, err := Open(Options{Name: "stranger", Broker: path, Listen: []string{"node:stranger"}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), testwait.Limit/2)
	defer cancel()
	i, err := n.Import(ctx, 1, "node:0/private")
	if !errors.Is(err, broker.ErrRefused) {
		return fmt.Errorf("a process that lets nobody in: %v, %v", i, err)
	}
	if i, err = n.Import(ctx, 1, "node:0/open"); err != nil || i.Shared() {
		return fmt.Errorf("%v, %w", i, err)
	}
	return i.Send(ctx, []byte("hello"), 3, SendOptions{Notify: true})
}

func TestProcessOfAnotherUserSends(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	testwait.Bound(t)
	p := Permissions{Peers: []string{fmt.Sprintf("%d/stranger", nobody)}}
	openNode(t, Options{Broker: brokertest.Socket, Listen: []string{"node:private"}})
	exporter := openNode(t, Options{Broker: brokertest.Socket, Listen: []string{"node:open"}, Users: []uint32{nobody}})
	memory, err := exporter.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	e, err := exporter.Export(1, memory, p, ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	e.Block()
	t.Setenv("VMMC_TEST_DIR", brokertest.Socket)
	testwait.Peer(t, "VMMC_TEST_PEER=stranger")
	if got := wait(t, e); got.Offset != 3 || got.Bytes != 5 || string(memory[3:8]) != "hello" {
		t.Errorf("%+v, %q", got, memory[:10])
	}
	all, err := broker.List(testContext(t), brokertest.Socket) // root sees all users
	is := func(p broker.Process) bool { return p.UID == nobody && p.Name == "stranger" }
	if err != nil || !slices.ContainsFunc(all, is) {
		t.Errorf("%+v, %v", all, err)
	}
}

// An exporter that is killed gives its name back: who waits for that finds the next one.
func TestImportSurvivesAnExporterThatIsKilled(t *testing.T) {
	testwait.Bound(t)
	t.Setenv("VMMC_TEST_DIR", brokertest.Socket)
	_, kill := testwait.Peer(t, "VMMC_TEST_PEER=named")
	importer := openNode(t, Options{Broker: brokertest.Socket})
	i, err := importer.Import(testContext(t), 1, "node:named")
	if err != nil {
		t.Fatal(err)
	}
	waits := importer.ImportAsync(2, "node:named")
	begun(t, importer, 2, "node:named")
	kill()
	testwait.Receive(t, "the end of the import", i.Done())
	if _, err := waits.Result(); !errors.Is(err, ErrPeerGone) {
		t.Errorf("an import that waited for an export: %v", err)
	}
	again := importer.ImportAsync(1, "node:named")
	testwait.Peer(t, "VMMC_TEST_PEER=named")
	if _, err := again.Result(); err != nil {
		t.Errorf("from its successor: %v", err)
	}
}

func TestExportsAreLimited(t *testing.T) {
	n := openNode(t, Options{MaxExports: 2})
	for id := range uint32(3) {
		_, err := n.Export(id, make([]byte, 1), Permissions{}, ExportOptions{})
		if (id < 2) != (err == nil) || err != nil && !errors.Is(err, ErrTooManyExports) {
			t.Errorf("export %d: %v", id, err)
		}
	}
}

// introduce connects an importer to an exporter as the broker does for a user, and returns the address.
func introduce(t *testing.T, exporter, importer *Node, uid uint32) string {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := l.Accept()
	if err == nil {
		err = exporter.begin(&broker.Conn{Conn: other, Peer: broker.Origin{UID: uid}}, endpoint{network: "node"})
	}
	if err != nil {
		t.Fatal(err)
	}
	const address = "node:introduced"
	o := newOutbound(importer, address, newStream(&unixConn{UnixConn: c.(*net.UnixConn)}, &importer.opt))
	greeted := make(chan struct{})
	importer.mu.Lock()
	defer importer.mu.Unlock()
	if err := importer.spawn(func() { o.serve(greeted) }); err != nil {
		t.Fatal(err)
	}
	importer.outbound[address] = &dialing{done: greeted, out: o}
	return address
}

// A process of another user gets in as that user alone, whatever it calls itself, and gets no memory.
func TestOtherUserGetsNoMemoryAndNoName(t *testing.T) {
	testwait.Bound(t)
	other := uint32(os.Geteuid() + 1)
	exporter, importer := openNode(t, Options{}), openNode(t, Options{Name: "friend"})
	for id, p := range []Permissions{
		{Peers: []string{"friend"}}, {UIDs: []uint32{uint32(os.Geteuid())}},
		{UIDs: []uint32{other}}, {Peers: []string{fmt.Sprintf("%d/friend", other)}},
	} {
		memory, err := exporter.Alloc(100)
		if err == nil {
			_, err = exporter.Export(uint32(id), memory, p, ExportOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	address := introduce(t, exporter, importer, other)
	for id := range uint32(4) {
		i, err := importer.Import(testContext(t), id, address)
		switch {
		case id < 2 && !errors.Is(err, ErrNotPermitted):
			t.Errorf("export %d: %v", id, err)
		case id >= 2 && (err != nil || i.Shared()):
			t.Errorf("export %d: %+v, %v", id, i, err)
		}
	}
}

// An exporter of another user must not give this process memory to write to, whatever it says.
func TestMemoryOfAnotherUserIsRefused(t *testing.T) {
	testwait.Bound(t)
	exporter := openNode(t, Options{})
	importer := openNode(t, Options{Name: "friend"})
	memory, err := exporter.Alloc(100)
	if err == nil {
		_, err = exporter.Export(1, memory, Permissions{UIDs: []uint32{uint32(os.Geteuid())}}, ExportOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	// The exporter takes the importer for a process of its user; the importer doesn't know whose it is.
	address := introduce(t, exporter, importer, uint32(os.Geteuid()))
	if _, err := importer.Import(testContext(t), 1, address); !errors.Is(err, ErrPeerGone) {
		t.Errorf("Import: %v", err)
	}
}
