package vmmc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/verbstest"
)

// faultsBetweenNodes are what happens to peers and to the network between them. Node 1 runs them.
var faultsBetweenNodes = []struct {
	name string
	test func(t *testing.T, tr transport, there *rpc.Client)
}{
	{"an importer that is killed is forgotten", func(t *testing.T, tr transport, there *rpc.Client) {
		w := tr.far(t, there, FarOptions{}, quiet)
		const size = 1 << 20
		w.export(t, FarExport{ID: 1, Bytes: size, MaxImporters: 1})
		for range 2 { // the second finds the place of the first
			_, kill := w.sendingPeer(t)
			kill()
			testwait.Until(t, "the importer is forgotten", func() bool { return w.importers(t, 1) == 0 })
		}
		w.deadAfterUnexport(t, size, func() {})
	}},
	{"an importer that is stopped keeps nothing", func(t *testing.T, tr transport, there *rpc.Client) {
		w := tr.far(t, there, FarOptions{RevokeTimeout: 500 * time.Millisecond}, quiet)
		const size = 1 << 20
		w.export(t, FarExport{ID: 1, Bytes: size})
		pid, _ := w.sendingPeer(t)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "the stop of all threads", func() bool { return allThreads(t, pid, "T") })
		w.deadAfterUnexport(t, size, func() {
			if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "the end of the importer", func() bool { return allThreads(t, pid, "Z") })
		})
	}},
	{"after an exporter was killed nothing stays pinned", func(t *testing.T, tr transport, there *rpc.Client) {
		w := tr.far(t, there, FarOptions{}, quiet)
		pinned := verbstest.StatusBytes(t, "VmPin")
		w.ask(t, "Peer", overWhat(tr)+" receiver", &w.address)
		i, h := w.imports(t, 1), w.importer.ImportAsync(99, w.address)
		s := sendInARow(t, i, 4096)
		s.until(t, "some messages", func() bool { return s.sent.Load() > 20 })
		w.tell(t, "Kill", true)
		if err := testwait.Receive(t, "the end of the messages", s.ended); !errors.Is(err, ErrPeerGone) {
			t.Error(err)
		}
		if _, err := h.Result(); !errors.Is(err, ErrPeerGone) {
			t.Errorf("an import that waited: %v", err)
		}
		if err := w.importer.Close(); err != nil {
			t.Error(err)
		}
		if after := verbstest.StatusBytes(t, "VmPin"); after != pinned {
			t.Errorf("VmPin is %d after Close, was %d", after, pinned)
		}
	}},
	{"messages outlive a link that is down for a while", func(t *testing.T, tr transport, there *rpc.Client) {
		w := tr.far(t, there, FarOptions{}, quiet)
		i := w.pair(t, 1<<16, ExportOptions{})
		answer := w.watch(Watching{ID: 1, Words: []int{4096, 8192, 16384}, Flag: 0, Last: lastMessage})
		s := sendInARow(t, i, 4096)
		s.until(t, "some messages", func() bool { return s.sent.Load() > 20 })
		linkDown(t)
		time.Sleep(3 * time.Second) // RDMA gives up after two
		linkUp(t)
		before := s.sent.Load()
		s.until(t, "messages go on", func() bool { return s.sent.Load() > before+20 })
		w.settle(t, i)
		before = s.sent.Load()
		s.until(t, "and on", func() bool { return s.sent.Load() > before+20 })
		s.stop(t)
		if err := testwait.Receive(t, "the last message", answer); err != nil {
			t.Error(err)
		}
		if i.Err() != nil {
			t.Error(i.Err())
		}
	}},
	{"RDMA is replaced by the connection while its packets are lost", func(t *testing.T, tr transport, there *rpc.Client) {
		rdmaIsCut(t, tr, there, func(t *testing.T, _ *far, line string) { shell(t, line) })
	}},
	{"nothing goes back if only acknowledgements are lost", func(t *testing.T, tr transport, there *rpc.Client) {
		rdmaIsCut(t, tr, there, func(t *testing.T, w *far, line string) { w.ask(t, "Shell", line, new(string)) })
	}},
	{"a peer that is silent is gone after the heartbeat", func(t *testing.T, tr transport, there *rpc.Client) {
		const heartbeat = 4 * time.Second
		w := tr.far(t, there, FarOptions{Heartbeat: heartbeat}, quiet)
		i := w.pair(t, 1<<16, ExportOptions{})
		h := w.importer.ImportAsync(99, w.address)
		begun(t, w.importer, 99, w.address)
		s := sendInARow(t, i, 4096)
		s.until(t, "some messages", func() bool { return s.sent.Load() > 5 })
		linkDown(t)
		// TCP alone would go on for a quarter of an hour.
		if err := testwait.Receive(t, "the end of the messages", s.ended); !errors.Is(err, ErrPeerGone) {
			t.Error(err)
		}
		if _, err := h.Result(); !errors.Is(err, ErrPeerGone) {
			t.Errorf("an import that waited: %v", err)
		}
		testwait.Receive(t, "the end of the import", i.Done())
		time.Sleep(heartbeat) // of node 0
		linkUp(t)
		testwait.Until(t, "node 0 has forgotten the importer", func() bool { return w.importers(t, 1) == 0 })
		if err := arrive(t, w.imports(t, 1), "again"); err != nil {
			t.Error(err)
		}
		w.has(t, 0, "again")
	}},
	{"a network that loses packets loses no message", func(t *testing.T, tr transport, there *rpc.Client) {
		w := tr.far(t, there, FarOptions{}, quiet)
		_, local, m := farArea(t, w, 4, MapOptions{Copy: true})
		w.export(t, FarExport{ID: 2, Bytes: 1 << 16})
		w.tell(t, "Want", Wanting{2, "block"})
		i := w.imports(t, 2)
		const lossy, whole = "tc qdisc replace dev net0 root netem loss 2%", "tc qdisc del dev net0 root"
		mend := onBothNodes(t, w, lossy, whole)
		messages := 100
		if !testing.Short() {
			messages = 1000
		}
		src := make([]byte, 6000)
		for k := range messages {
			scribble(local, uint64(k), 5)
			for j := range src {
				src[j] = byte(k + j)
			}
			o := SendOptions{Notify: k%10 == 9, Tag: uint16(k)}
			if err := i.Send(testContext(t), src, uint64(k%2*6000), o); err != nil {
				t.Fatal(err)
			}
			if !o.Notify {
				continue
			}
			if n := w.notification(t, 2); n.Tag != o.Tag {
				t.Errorf("notification %d, not %d", n.Tag, o.Tag)
			}
			var got []byte
			if w.ask(t, "Look", Place{2, k % 2 * 6000, 6000}, &got); !bytes.Equal(got, src) {
				t.Fatalf("message %d: other bytes arrived", k)
			}
			if err := m.Flush(testContext(t)); err != nil {
				t.Fatal(err)
			}
			w.equal(t, local)
		}
		mend()
	}},
}

// rdmaIsCut drops what a node sends by RDMA, which run runs lines of the shell on, for a while.
func rdmaIsCut(t *testing.T, tr transport, there *rpc.Client, run func(*testing.T, *far, string)) {
	if tr.name != "rdma" {
		t.Skip("is about RDMA")
	}
	warned := make(chan string, 99)
	w := tr.far(t, there, FarOptions{}, func(m string) { warned <- m })
	i := w.pair(t, 1<<16, ExportOptions{})
	answer := w.watch(Watching{ID: 1, Words: []int{4096, 8192, 16384}, Flag: 0, Last: lastMessage})
	s := sendInARow(t, i, copyBytes) // one to each place is on its way at a time
	s.until(t, "some messages", func() bool { return s.sent.Load() > 20 })
	// RoCE has port 4791 of UDP (IBTA, annex A17).
	const mend = "tc qdisc del dev net0 clsact"
	t.Cleanup(func() {
		_ = exec.Command("sh", "-c", mend).Run() // on one of both it was done before
		_ = there.Call("There.Shell", mend, new(string))
	})
	had := throughConnection(i)
	run(t, w, "tc qdisc add dev net0 clsact && "+
		"tc filter add dev net0 egress protocol ip flower ip_proto udp dst_port 4791 action drop")
	s.until(t, "messages through the connection", func() bool { return throughConnection(i) > had+20 })
	s.until(t, "two more attempts", func() bool {
		i.link.mu.Lock()
		defer i.link.mu.Unlock()
		return i.link.rdma != nil && i.link.rdma.number >= 3
	})
	run(t, w, mend)
	s.until(t, "RDMA is back", func() bool {
		had, before := throughConnection(i), s.sent.Load()
		s.until(t, "messages", func() bool { return s.sent.Load() > before+50 })
		return throughConnection(i) == had
	})
	s.stop(t)
	if err := testwait.Receive(t, "the last message", answer); err != nil {
		t.Error(err)
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "RDMA is down") || len(warned) > 0 {
		t.Errorf("warned %q, and %d more", m, len(warned))
	}
}

// overWhat is the transport of a connectedPeer.
func overWhat(tr transport) string {
	over, _, _ := strings.Cut(tr.name, " ")
	return over
}

// sendingPeer is a process of this node that writes into export 1 for as long as it can.
func (w *far) sendingPeer(t *testing.T) (pid int, kill func()) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(peerDir(t), "address"), []byte(w.address), 0o600); err != nil {
		t.Fatal(err)
	}
	return testwait.Peer(t, "VMMC_TEST_PEER="+overWhat(w.transport)+" sender")
}

func (w *far) importers(t *testing.T, id uint32) (n int) {
	t.Helper()
	w.ask(t, "Importers", id, &n)
	return n
}

// deadAfterUnexport unexports export 1, into which a peer wrote that does not answer any more, writes over it, lets the
// peer go on, and looks whether that has changed anything.
func (w *far) deadAfterUnexport(t *testing.T, size int, goOn func()) {
	t.Helper()
	w.has(t, 0, "s")
	w.tell(t, "Unexport", uint32(1))
	w.tell(t, "Fill", Filling{1, 'x'})
	goOn()
	var all []byte
	if w.ask(t, "Look", Place{1, 0, size}, &all); bytes.Count(all, []byte{'x'}) != size {
		t.Error("something landed after Unexport")
	}
}

// lastMessage is the number of the message with which a row ends.
const lastMessage = 1 << 40

// row is messages that are sent one after the other.
type row struct {
	i     *Import
	sent  atomic.Uint64
	halt  chan struct{}
	ended chan error
}

// sendInARow sends messages until one fails: each a number, to four places. The first place has it last.
func sendInARow(t *testing.T, i *Import, bytes int) *row {
	s := &row{i: i, halt: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		src := make([]byte, bytes)
		for k := uint64(1); ; k++ {
			select {
			case <-s.halt:
				k = lastMessage
			default:
			}
			binary.NativeEndian.PutUint64(src, k)
			for _, to := range []struct {
				off uint64
				src []byte
			}{{4096, src}, {8192, src}, {16384, src[:8]}, {0, src[:8]}} {
				if err := i.Send(context.Background(), to.src, to.off, SendOptions{}); err != nil {
					s.ended <- err
					return
				}
			}
			if s.sent.Store(k); k == lastMessage {
				s.ended <- nil
				return
			}
		}
	}()
	return s
}

// until is testwait.Until as long as messages can be sent.
func (s *row) until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	testwait.Until(t, what, func() bool {
		if err := s.i.Err(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return cond()
	})
}

// stop ends the row with its last message.
func (s *row) stop(t *testing.T) {
	t.Helper()
	close(s.halt)
	if err := testwait.Receive(t, "the last message", s.ended); err != nil {
		t.Error(err)
	}
}

func shell(t *testing.T, line string) {
	t.Helper()
	if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// linkDown cuts the network between the nodes: nothing may be asked of the other one until linkUp.
func linkDown(t *testing.T) {
	t.Helper()
	t.Cleanup(func() { _ = exec.Command("ip", "link", "set", "net0", "up").Run() })
	shell(t, "ip link set net0 down")
}

func linkUp(t *testing.T) {
	t.Helper()
	shell(t, "ip link set net0 up")
}

// onBothNodes runs a line of the shell on both nodes. What undoes it is run by mend, or at the end of the test.
func onBothNodes(t *testing.T, w *far, do, undo string) (mend func()) {
	t.Helper()
	undone := false
	mend = func() {
		if !undone {
			undone = true
			_ = exec.Command("sh", "-c", undo).Run()
			_ = w.there.Call("There.Shell", undo, new(string))
		}
	}
	t.Cleanup(mend)
	w.ask(t, "Shell", do, new(string))
	shell(t, do)
	return mend
}
