package vmmc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs/verbstest"
)

func overRDMA(t *testing.T) transport { return transportOf(t, "rdma") }

// throughConnection returns how many Data and Notify frames an import's node has sent.
func throughConnection(i *Import) uint64 {
	i.link.mu.Lock()
	defer i.link.mu.Unlock()
	return i.link.count
}

// arrive sends a message and waits for its arrival.
func arrive(t *testing.T, i *Import, src string) error {
	op, err := i.SendAsync([]byte(src), 0, SendOptions{})
	if err != nil {
		return err
	}
	return op.Wait(testContext(t))
}

func outside(t *testing.T, n int) []byte {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	for k := range b {
		b[k] = byte(k>>8 ^ k)
	}
	return b
}

func TestRDMASendsFromRegisteredSources(t *testing.T) {
	w := overRDMA(t).begin(t)
	memory, _, i := w.pair(t, 3<<20, ExportOptions{})
	src := outside(t, 1<<20)
	before := w.importer.fabric.manager.Stats().Cache
	keepLease(t, i)
	had := throughConnection(i)
	for k := range 10 {
		off := uint64(k)
		op, err := i.SendAsync(src, off, SendOptions{})
		if err == nil {
			err = op.Wait(testContext(t))
		}
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(memory[off:][:len(src)], src) {
			t.Fatalf("message %d: other bytes arrived", k)
		}
	}
	if n := throughConnection(i) - had; n > 0 {
		t.Errorf("%d frames went through the connection", n)
	}
	after := w.importer.fabric.manager.Stats().Cache
	if first, hits := after.First-before.First, after.Hits-before.Hits; first != 1 || hits == 0 {
		t.Errorf("%d first uses and %d hits", first, hits)
	}
}

// A message to a place beyond the export, as a peer could send that is no node of this package.
func TestRDMAAccessErrorEndsThatConnectionOnly(t *testing.T) {
	for what, change := range map[string]func(r, others *remoteRegion){
		"a byte beyond": func(r, _ *remoteRegion) { r.addr++ },
		"a byte before": func(r, _ *remoteRegion) { r.addr-- },
		"another's key": func(r, others *remoteRegion) { r.key = others.key },
		"no key":        func(r, _ *remoteRegion) { r.key ^= 1 << 8 },
		"anywhere else": func(r, _ *remoteRegion) { r.addr = 4096 },
		"a page beyond": func(r, _ *remoteRegion) { r.addr += uint64(mem.PageSize) },
	} {
		t.Run(what, func(t *testing.T) {
			warned := make(chan string, 9)
			w := overRDMA(t).begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
			around := w.memory(t, 300)
			w.export(t, 1, around[100:200], Permissions{Peers: []string{"sender", "other"}}, ExportOptions{})
			bad := w.imports(t, 1)
			other, err := w.node(t, "other").Import(testContext(t), 1, w.address)
			if err != nil {
				t.Fatal(err)
			}
			keepLease(t, other)
			other.link.mu.Lock()
			others := other.remote
			other.link.mu.Unlock()
			keepLease(t, bad)
			bad.link.mu.Lock()
			change(&bad.remote, &others)
			bad.link.mu.Unlock()
			if err := arrive(t, bad, strings.Repeat("!", 100)); !errors.Is(err, ErrPeerGone) {
				t.Errorf("Send: %v", err)
			}
			testwait.Receive(t, "the end of the import", bad.Done())
			if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, `"sender"`) {
				t.Errorf("warned %q", m)
			}
			if bytes.Contains(around, []byte("!")) {
				t.Error("something was written")
			}
			send(t, other, "fine", 96, SendOptions{})
			arrives(t, around, 196, "fine")
			if !other.RDMA() {
				t.Error("another's RDMA ended")
			}
			w.imports(t, 1) // the node can come again
		})
	}
}

func TestRDMAKeyIsDeadAfterUnexport(t *testing.T) {
	w := overRDMA(t).begin(t)
	memory, e, i := w.pair(t, 100, ExportOptions{})
	w.export(t, 2, w.memory(t, 100), sender, ExportOptions{})
	second := w.imports(t, 2)
	keepLease(t, i)
	keepLease(t, second)
	i.link.mu.Lock()
	dead := i.remote
	i.link.mu.Unlock()
	if err := e.Unexport(testContext(t)); err != nil {
		t.Fatal(err)
	}
	w.exporter.opt.Warn = quiet // it will say whose connection it ended
	second.link.mu.Lock()
	second.remote = dead
	second.link.mu.Unlock()
	if err := arrive(t, second, "!"); !errors.Is(err, ErrPeerGone) {
		t.Errorf("Send: %v", err)
	}
	if bytes.Contains(memory, []byte("!")) {
		t.Error("something landed after Unexport")
	}
}

// warningOf waits for the warning of a queue pair that has failed, and sends to byte 300,000: if no lease was left,
// nothing was on its way, and the next message by RDMA finds out.
func warningOf(t *testing.T, i *Import, warned <-chan string) (m string) {
	t.Helper()
	testwait.Until(t, "a warning", func() bool {
		select {
		case m = <-warned:
			return true
		default:
			send(t, i, "x", 300_000, SendOptions{})
			return false
		}
	})
	return m
}

// What was under way when RDMA failed goes through the connection, in its order. Then RDMA comes back.
func TestRDMAIsReplacedByTheConnectionWhileItIsDown(t *testing.T) {
	w := overRDMA(t).begin(t)
	warned := make(chan string, 99)
	w.importer.opt.Warn = func(m string) { warned <- m }
	memory, e, i := w.pair(t, 1<<20, ExportOptions{})
	e.Block()
	const messages = 300
	var ops []*Op
	src := outside(t, messages*4096)
	keepLease(t, i)
	for k := range messages {
		if k == messages/2 {
			i.link.mu.Lock()
			i.link.rdma.qp.Fail()
			i.link.mu.Unlock()
		}
		b := src[k*4096:][:4096]
		binary.NativeEndian.PutUint64(b, uint64(k)+1)
		op, err := i.SendAsync(b, uint64(k%2*4096), SendOptions{Notify: k%50 == 0, Tag: uint16(k)})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	for k, op := range ops {
		if err := op.Wait(testContext(t)); err != nil {
			t.Fatalf("message %d: %v", k, err)
		}
	}
	for k := range 2 {
		if !bytes.Equal(memory[k*4096:][:4096], src[(messages-2+k)*4096:][:4096]) {
			t.Errorf("the last message to place %d is not there", k)
		}
	}
	for k := 0; k < messages; k += 50 {
		if n := wait(t, e); n.Tag != uint16(k) {
			t.Errorf("notification %d instead of %d", n.Tag, k)
		}
	}
	if m := warningOf(t, i, warned); !strings.Contains(m, "RDMA is down") || len(warned) > 0 {
		t.Errorf("warned %q, and %d more", m, len(warned))
	}
	keepLease(t, i)
	had := throughConnection(i)
	send(t, i, "back", 5000, SendOptions{})
	arrives(t, memory, 5000, "back")
	if throughConnection(i) != had {
		t.Error("it is not used")
	}
}

func TestRDMAIsNotNeeded(t *testing.T) {
	for what, change := range map[string][2]bool{"the exporter": {true, false}, "the importer": {false, true}} {
		t.Run(what, func(t *testing.T) {
			tr := overRDMA(t)
			w := tr.begin(t, func(o *Options) { o.NoRDMA = change[0] })
			o := tr.options(t, "sender")
			o.NoRDMA = change[1]
			w.importer = openNode(t, o)
			memory := w.memory(t, 100)
			w.export(t, 1, memory, sender, ExportOptions{})
			i, err := w.importer.Import(testContext(t), 1, w.address)
			if err != nil {
				t.Fatal(err)
			}
			send(t, i, "hello", 10, SendOptions{})
			arrives(t, memory, 10, "hello")
			if throughConnection(i) != 1 || i.RDMA() {
				t.Error("it went by RDMA")
			}
		})
	}
}

// An exporter answers every Down, also that of an importer which has just heard that it has no device.
func TestRDMAIsNotTriedAgainWithoutADevice(t *testing.T) {
	s := &rdmaSender{number: 1, over: make(chan struct{})}
	o := &outbound{rdma: s}
	for _, code := range []uint8{wire.NoRDMA, wire.RDMAFailed} {
		if err := o.introduced(&wire.Frame{Type: wire.Down, Number: 1, Code: code}); err != nil {
			t.Fatal(err)
		}
	}
	if !s.none {
		t.Error("the answer to the importer's own Down made it try again")
	}
}

func TestRDMALacksRoomForASource(t *testing.T) {
	warned := make(chan string, 9)
	w := overRDMA(t).begin(t)
	o := w.options(t, "sender")
	o.Manager.BudgetBytes = 256 << 10
	o.Warn = func(m string) { warned <- m }
	w.importer = openNode(t, o)
	memory, _, i := w.pair(t, 1<<20, ExportOptions{})
	src := outside(t, 1<<20)
	keepLease(t, i)
	for _, n := range []int{8, 1 << 20, 64 << 10, 1 << 20, 8} {
		if err := i.Send(testContext(t), src[:n], 0, SendOptions{}); err != nil {
			t.Fatal(err)
		}
		clear(src[:1])
	}
	send(t, i, "x", 0, SendOptions{})
	arrives(t, memory, 0, "x")
	if !bytes.Equal(memory[1:], src[1:]) {
		t.Error("other bytes arrived")
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "can't be registered") || len(warned) > 0 {
		t.Errorf("warned %q, and %d more", m, len(warned))
	}
}

func TestRDMALeavesNothingPinned(t *testing.T) {
	before := verbstest.StatusBytes(t, "VmPin")
	w := overRDMA(t).begin(t)
	_, _, i := w.pair(t, 1<<20, ExportOptions{})
	keepLease(t, i)
	if err := i.Send(testContext(t), outside(t, 1<<20), 0, SendOptions{}); err != nil {
		t.Fatal(err)
	}
	if pinned := verbstest.StatusBytes(t, "VmPin"); pinned < before+1<<20 {
		t.Errorf("%d bytes are pinned, of an export of 1 MiB", pinned-before)
	}
	if err := errors.Join(w.importer.Close(), w.exporter.Close()); err != nil {
		t.Fatal(err)
	}
	if after := verbstest.StatusBytes(t, "VmPin"); after != before {
		t.Errorf("VmPin is %d after Close, was %d", after, before)
	}
}
