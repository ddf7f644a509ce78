package vmmc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/testwait"
)

// The processes that tests kill and stop.
func peerProcess(bufferID, dir string) {
	fail := func(err error) {
		if err != nil {
			fmt.Println(bufferID, err)
			os.Exit(1)
		}
	}
	if bufferID == "stranger" {
		fail(strange(dir))
		testwait.Ready()
	}
	address := "unix:" + filepath.Join(dir, bufferID)
	o := Options{Name: bufferID}
	if bufferID == "named" {
		address, o.Broker = "node:named", dir
	}
	o.Listen = []string{address}
	n, err := Open(o)
	fail(err)
	switch bufferID {
	case "named":
		_, err := n.Export(1, make([]byte, 100), Permissions{UIDs: []uint32{uint32(os.Geteuid())}}, ExportOptions{})
		fail(err)
	case "receiver": // exports 1, in shared memory, and 2, which is not shared
		memory, err := n.Alloc(1 << 20)
		fail(err)
		for id, m := range map[uint32][]byte{1: memory, 2: make([]byte, 1<<20)} {
			e, err := n.Export(id, m, sender, ExportOptions{Queue: 1})
			fail(err)
			e.Block()
		}
	case "sender": // writes into export 1 of the test for as long as it can
		i, err := n.Import(context.Background(), 1, "unix:"+filepath.Join(dir, "test"))
		fail(err)
		src := make([]byte, i.Bytes())
		for k := range src {
			src[k] = 's'
		}
		send := func() error { return i.Send(context.Background(), src, 0, SendOptions{}) }
		fail(send())
		go func() {
			for send() == nil {
			}
			os.Exit(0)
		}()
	}
	testwait.Ready()
}

func peerDir(t *testing.T) string {
	dir := testwait.ShortDir(t)
	t.Setenv("VMMC_TEST_DIR", dir)
	return dir
}

func TestExporterIsKilled(t *testing.T) {
	testwait.Bound(t)
	address := "unix:" + filepath.Join(peerDir(t), "receiver")
	_, kill := testwait.Peer(t, "VMMC_TEST_PEER=receiver")
	n := openNode(t, Options{Name: "sender"})
	ctx := testContext(t)
	waiting := n.ImportAsync(99, address)
	begun(t, n, 99, address)
	for id := range uint32(2) {
		i, err := n.Import(ctx, id+1, address)
		if err != nil {
			t.Fatal(err)
		}
		if i.Shared() != (id == 0) {
			t.Errorf("export %d is shared: %v", id+1, i.Shared())
		}
		if err := i.Send(ctx, []byte("x"), 0, SendOptions{Notify: true}); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 3)
		o := SendOptions{Notify: true, Done: func(err error) { done <- err }}
		op, err := i.SendAsync([]byte("y"), 0, o) // the queue is full
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for what, err := range map[string]error{
				"Wait": op.Wait(ctx), "Send": i.Send(ctx, []byte("x"), 0, SendOptions{}),
				"Send with notification": i.Send(ctx, []byte("x"), 0, o),
				"Done":                   testwait.Receive(t, "Done", done),
			} {
				if !errors.Is(err, ErrPeerGone) {
					t.Errorf("export %d: %s: %v", id+1, what, err)
				}
			}
			if len(done) > 0 {
				t.Errorf("export %d: Done was called by Send, or twice", id+1)
			}
		})
	}
	kill()
	if _, err := waiting.Result(); !errors.Is(err, ErrPeerGone) {
		t.Errorf("an import that waited: %v", err)
	}
}

// testExport listens for the sender process.
func testExport(t *testing.T, o Options) (n *Node, e *Export, memory []byte) {
	o.Name, o.Listen = "test", []string{"unix:" + filepath.Join(peerDir(t), "test")}
	n = openNode(t, o)
	memory, err := n.Alloc(4 << 20)
	if err != nil {
		t.Fatal(err)
	}
	e, err = n.Export(1, memory, Permissions{Peers: []string{"sender"}, MaxImporters: 1}, ExportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return n, e, memory
}

func TestImporterIsKilledWhileItSends(t *testing.T) {
	testwait.Bound(t)
	_, e, memory := testExport(t, Options{})
	for range 3 { // each finds the place of the one before free
		_, kill := testwait.Peer(t, "VMMC_TEST_PEER=sender")
		kill()
	}
	if err := e.Unexport(testContext(t)); err != nil || memory[0] != 's' {
		t.Errorf("%v; has %q", err, memory[0])
	}
}

// allThreads tells whether all threads of a process are in a state of proc(5).
func allThreads(t *testing.T, pid int, state string) bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatal(tasks, err)
	}
	for _, f := range tasks {
		b, err := os.ReadFile(f)
		if err == nil && !strings.Contains(string(b), ") "+state+" ") { // else it has ended
			return false
		}
	}
	return true
}

// A stopped process may be in the middle of a copy into shared memory. Unexport neither waits for it nor lets
// it overwrite anything afterwards.
func TestUnexportFromAStoppedImporter(t *testing.T) {
	testwait.Bound(t)
	var warnings []string
	warn := func(m string) { warnings = append(warnings, m) }
	n, e, memory := testExport(t, Options{RevokeTimeout: 50 * time.Millisecond, Warn: warn})
	pid, kill := testwait.Peer(t, "VMMC_TEST_PEER=sender")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the stop of all threads", func() bool { return allThreads(t, pid, "T") })
	memory[100] = 'm'
	if err := e.Unexport(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if memory[0] != 's' || memory[100] != 'm' {
		t.Errorf("the content is %q, %q", memory[0], memory[100])
	}
	for k := range memory {
		memory[k] = 'x'
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "the end of the importer, which has gone on", func() bool { return allThreads(t, pid, "Z") })
	kill()
	if strings.Trim(string(memory), "x") != "" {
		t.Error("something landed after Unexport")
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], `"sender"`) {
		t.Errorf("warned %q", warnings)
	}
	if err := n.Free(memory); err != nil {
		t.Error(err)
	}
}

// An importer that gives up hangs up only after its last copy: the exporter takes the end of the connection for
// the end of all writes.
func TestImporterThatFailsHangsUpLast(t *testing.T) {
	w := transports[0].begin(t)
	_, e, i := w.pair(t, 100, ExportOptions{})
	i.mu.RLock() // as a copy that is under way
	i.link.fail(errors.New("the exporter is silent"))
	testwait.Receive(t, "the end of the import", i.Done())
	gone, err := e.UnexportAsync()
	if err != nil {
		t.Fatal(err)
	}
	if err := i.link.conn.SetDeadline(time.Time{}); err != nil {
		t.Errorf("the connection was closed during a copy: %v", err)
	}
	select {
	case <-gone:
		t.Error("Unexport returned during a copy")
	default:
	}
	i.mu.RUnlock()
	testwait.Receive(t, "the end of the export", gone)
	if e.unreturned {
		t.Error("the export got other memory, although the importer has closed its connection")
	}
}

// An exporter that says hello and goodbye at once may be gone before the one who dialled has noted the connection.
func TestConnectionThatIsOverIsNotKept(t *testing.T) {
	testwait.Bound(t)
	address := socket(t)
	l, err := net.Listen("unix", strings.TrimPrefix(address, "unix:"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b := wire.Append(nil, &wire.Frame{Type: wire.Hello, Version: wire.Version, Count: 9000})
			_, _ = c.Write(wire.Append(b, &wire.Frame{Type: wire.Bye}))
			c.Close()
		}
	}()
	n := openNode(t, Options{})
	var out *outbound
	testwait.Until(t, "a greeting", func() bool { out, err = n.dial(testContext(t), address); return err == nil })
	testwait.Until(t, "the end of it", func() bool {
		out.mu.Lock()
		defer out.mu.Unlock()
		return out.down != nil
	})
	d := &dialing{done: make(chan struct{})}
	n.outbound[address] = d
	if o, err := n.dialled(address, d, out, nil); o != nil || err == nil || n.outbound[address] != nil {
		t.Errorf("it was kept: %v, %v", o, err)
	}
}

// A notification that waits for a credit keeps nothing else of the connection waiting, not even until the ping.
func TestNotificationWithoutACreditDelaysNoOthers(t *testing.T) {
	w := transports[1].begin(t, func(o *Options) { o.Heartbeat = time.Hour })
	w.importer = openNode(t, Options{Name: "sender", Heartbeat: time.Hour})
	_, e, full := w.pair(t, 100, ExportOptions{Queue: 1})
	e.Block()
	w.export(t, 2, w.memory(t, 100), sender, ExportOptions{})
	other := w.imports(t, 2)
	send(t, full, "x", 0, SendOptions{Notify: true}) // the only credit
	waits, message := newOp(full, nil, 0, SendOptions{Notify: true}), newOp(other, []byte("y"), 0, SendOptions{})
	l := full.link
	l.mu.Lock()
	l.queue = append(l.queue, waits, message) // both before the writer looks
	l.stir()
	l.mu.Unlock()
	if err := message.Wait(testContext(t)); err != nil {
		t.Error(err)
	}
}

// Whoever ends something beside the end of its node can't know which comes first.
func TestMemoryOfANodeThatWasClosed(t *testing.T) {
	n := openNode(t, Options{})
	memory, err := n.Alloc(1)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Free(make([]byte, 1)); err == nil || errors.Is(err, ErrClosed) {
		t.Errorf("memory that Alloc did not return: %v", err)
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if err := n.Free(memory); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}
