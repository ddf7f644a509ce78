package vmmc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc64"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/verbstest"
)

// TestTwoNodes runs on both guests of the test bed at the same time (make test-vmmc-2node). Node 0 exports and does
// what node 1 asks of it, over a connection of their own. Node 1 imports, sends and judges.
func TestTwoNodes(t *testing.T) {
	if os.Getenv("TESTBED_NODES") != "2" {
		t.Skip("needs the two guests of the test bed (make test-vmmc-2node)")
	}
	const port = "18516"
	if os.Getenv("TESTBED_NODE") == "0" {
		x := &There{t: t}
		x.serve(net.JoinHostPort(os.Getenv("TESTBED_ADDR"), port))
		return
	}
	there := dialThere(t, net.JoinHostPort(os.Getenv("TESTBED_PEER"), port))
	defer there.Close()
	for _, tr := range transports[2:5] {
		t.Run(tr.name, func(t *testing.T) {
			for _, s := range slices.Concat(sentencesBetweenNodes, updatesBetweenNodes) {
				t.Run(s.name, func(t *testing.T) { s.test(t, tr.far(t, there, FarOptions{}, nil)) })
			}
		})
	}
	for _, name := range []string{"tcp with token", "rdma"} { // of those over TLS one is enough
		tr := transportOf(t, name)
		t.Run("faults over "+name, func(t *testing.T) {
			for _, f := range faultsBetweenNodes {
				t.Run(f.name, func(t *testing.T) { f.test(t, tr, there) })
			}
		})
	}
}

// dialThere waits until the other node has booted and listens.
func dialThere(t *testing.T, address string) *rpc.Client {
	t.Helper()
	for end := time.Now().Add(testwait.Limit); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return rpc.NewClient(c)
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// There is node 0, as node 1 sees it by package net/rpc.
type There struct {
	t *testing.T

	mu      sync.Mutex
	node    *Node
	exports map[uint32]*farExport
	warned  []string
	kill    func()
}

// farExport lies in the middle of memory that nothing may change.
type farExport struct {
	*Export
	memory, around []byte
	handled        chan Handled
	watching       sync.WaitGroup
	over           chan struct{} // closed when nobody may look at the memory any more
}

// besides are the bytes on each side of an export. It begins at no page.
const besides = 104

// FarOptions are those of the exporter that Open makes.
type FarOptions struct {
	Transport                string
	Heartbeat, RevokeTimeout time.Duration
}

// FarExport is an export to be made.
type FarExport struct {
	ID           uint32
	Bytes        int
	Peers        []string
	MaxImporters int
	Options      ExportOptions
}

// Place is a part of an export.
type Place struct {
	ID            uint32
	Offset, Bytes int
}

// Filling is a byte for all places of an export.
type Filling struct {
	ID   uint32
	With byte
}

// Handled is what a handler saw when it was called: the notification, and the last byte of its message.
type Handled struct {
	Notification Notification
	Last         byte
}

// Wanting changes what becomes of notifications.
type Wanting struct {
	ID  uint32
	How string // block, unblock, discard, accept, handle
}

// Watching asks whether words of an export never are behind a flag, until that has the value Last.
type Watching struct {
	ID    uint32
	Words []int // their offsets
	Flag  int   // its offset
	Last  uint64
}

// Usage is what the process has taken.
type Usage struct {
	Switches int64 // of context
	CPU      time.Duration
	Pinned   int64 // bytes
}

// serve does what node 1 asks, until that hangs up.
func (x *There) serve(address string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		x.t.Fatal(err)
	}
	defer l.Close()
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(testwait.Limit)); err != nil {
		x.t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		x.t.Fatal(err)
	}
	s := rpc.NewServer()
	if err := s.Register(x); err != nil {
		x.t.Fatal(err)
	}
	s.ServeConn(c)
}

// Open makes the exporter, and returns its address.
func (x *There) Open(o FarOptions, address *string) error {
	tr := transportOf(x.t, o.Transport)
	n := tr.options(x.t, "receiver")
	n.Listen = []string{tr.listen(x.t)}
	n.Heartbeat, n.RevokeTimeout = cmp.Or(o.Heartbeat, testwait.Limit/2), o.RevokeTimeout
	n.Warn = func(m string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.warned = append(x.warned, m)
	}
	node, err := Open(n)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.node, x.exports, x.warned = node, map[uint32]*farExport{}, nil
	*address = node.Addresses()[0]
	return nil
}

// Close ends the exporter and returns what it warned of. It fails if something beside the exports was written to.
func (x *There) Close(_ bool, warned *[]string) error {
	x.mu.Lock()
	exports, node := x.exports, x.node
	x.mu.Unlock()
	var errs []error
	for id, e := range exports {
		if gone, err := e.UnexportAsync(); err == nil {
			<-gone
		}
		close(e.over)
		e.watching.Wait()
		n := len(e.around) - besides
		if side := append(bytes.Clone(e.around[:besides]), e.around[n:]...); bytes.Count(side, []byte{0xee}) != 2*besides {
			errs = append(errs, fmt.Errorf("something beside export %d was written to", id))
		}
	}
	errs = append(errs, node.Close())
	x.mu.Lock()
	defer x.mu.Unlock()
	*warned = x.warned
	return errors.Join(errs...)
}

// End closes the exporter. Its exports and their memory are gone.
func (x *There) End(bool, *bool) error {
	x.mu.Lock()
	x.exports = nil
	node := x.node
	x.mu.Unlock()
	return node.Close()
}

func (x *There) export(id uint32) (*farExport, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.exports[id]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("there is no export %d", id)
}

// Export makes an export full of zeros.
func (x *There) Export(o FarExport, _ *bool) error {
	around, err := x.node.Alloc(uint64(o.Bytes) + 2*besides)
	if err != nil {
		return err
	}
	around = around[:o.Bytes+2*besides]
	for k := range around {
		around[k] = 0xee
	}
	memory := around[besides:][:o.Bytes]
	clear(memory)
	e, err := x.node.Export(o.ID, memory, Permissions{Peers: o.Peers, MaxImporters: o.MaxImporters}, o.Options)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.exports[o.ID] = &farExport{
		Export: e, memory: memory, around: around, handled: make(chan Handled, 100), over: make(chan struct{}),
	}
	return nil
}

// Unexport ends an export, but not its memory.
func (x *There) Unexport(id uint32, _ *bool) error {
	e, err := x.export(id)
	if err != nil {
		return err
	}
	return e.Unexport(testContext(x.t))
}

// Look returns what is at a place.
func (x *There) Look(p Place, b *[]byte) error {
	e, err := x.export(p.ID)
	if err == nil {
		*b = bytes.Clone(e.memory[p.Offset:][:p.Bytes])
	}
	return err
}

var crc = crc64.MakeTable(crc64.ECMA)

// Sum is a checksum of an export.
func (x *There) Sum(id uint32, sum *uint64) error {
	e, err := x.export(id)
	if err == nil {
		*sum = crc64.Checksum(e.memory, crc)
	}
	return err
}

// Fill writes over an export.
func (x *There) Fill(f Filling, _ *bool) error {
	e, err := x.export(f.ID)
	if err == nil {
		for k := range e.memory {
			e.memory[k] = f.With
		}
	}
	return err
}

// Watch returns once the flag has its last value.
func (x *There) Watch(w Watching, _ *bool) error {
	e, err := x.export(w.ID)
	if err != nil {
		return err
	}
	e.watching.Add(1)
	defer e.watching.Done()
	flag := wordAt(e.memory, w.Flag)
	for seen := uint64(0); seen < w.Last; time.Sleep(20 * time.Microsecond) {
		select {
		case <-e.over:
			return fmt.Errorf("the last flag was %d", seen)
		default:
		}
		now := flag.Load()
		if now < seen || now > w.Last {
			return fmt.Errorf("the flag is %d after %d", now, seen)
		}
		for _, at := range w.Words {
			if has := wordAt(e.memory, at).Load(); has < now {
				return fmt.Errorf("the flag is %d, and the word at %d is %d", now, at, has)
			}
		}
		seen = now
	}
	return nil
}

// Wait waits for a notification.
func (x *There) Wait(id uint32, got *Notification) error {
	e, err := x.export(id)
	if err == nil {
		*got, err = e.Wait(testContext(x.t))
	}
	return err
}

// Want changes what becomes of notifications.
func (x *There) Want(w Wanting, _ *bool) error {
	e, err := x.export(w.ID)
	if err != nil {
		return err
	}
	switch w.How {
	case "block":
		e.Block()
	case "unblock":
		e.Unblock()
	case "discard":
		e.Discard(true)
	case "accept":
		e.Discard(false)
	case "handle":
		e.Handle(func(n Notification) { e.handled <- Handled{n, e.memory[n.Offset+n.Bytes-1]} })
	}
	return nil
}

// Handled waits for a call of the handler.
func (x *There) Handled(id uint32, h *Handled) error {
	e, err := x.export(id)
	if err != nil {
		return err
	}
	select {
	case *h = <-e.handled:
		return nil
	case <-time.After(testwait.Limit / 2):
		return errors.New("the handler was not called")
	}
}

// Importers is how many an export has.
func (x *There) Importers(id uint32, n *int) error {
	for _, e := range x.node.Stats().Exports {
		if e.ID == id {
			*n = e.Importers
			return nil
		}
	}
	return fmt.Errorf("there is no export %d", id)
}

// Usage is that of the exporter's process.
func (x *There) Usage(_ bool, u *Usage) error {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return err
	}
	*u = Usage{
		Switches: r.Nvcsw + r.Nivcsw, CPU: time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Pinned: verbstest.StatusBytes(x.t, "VmPin"),
	}
	return nil
}

// Peer starts a process with a role of connectedPeer, and returns its address.
func (x *There) Peer(role string, address *string) error {
	dir := peerDir(x.t)
	_, x.kill = testwait.Peer(x.t, "VMMC_TEST_PEER="+role)
	b, err := os.ReadFile(filepath.Join(dir, "address"))
	*address = string(b)
	return err
}

// Kill ends that process by SIGKILL.
func (x *There) Kill(bool, *bool) error {
	x.kill()
	return nil
}

// Shell runs a line of the shell.
func (x *There) Shell(line string, out *string) error {
	b, err := exec.Command("sh", "-c", line).CombinedOutput()
	if *out = string(b); err != nil {
		return fmt.Errorf("%s: %w: %s", line, err, b)
	}
	return nil
}

// far is an importer of this node and an exporter of the other one.
type far struct {
	transport
	there    *rpc.Client
	importer *Node
	address  string
	warns    bool // the exporter may
}

// far makes both. Those who expect warnings of the importer take them.
func (tr transport) far(t *testing.T, there *rpc.Client, o FarOptions, warn func(string)) *far {
	t.Helper()
	testwait.Bound(t)
	w := &far{transport: tr, there: there, warns: warn != nil}
	o.Transport = tr.name
	w.ask(t, "Open", o, &w.address)
	t.Cleanup(func() { // after the importer has closed
		var warned []string
		if w.ask(t, "Close", true, &warned); len(warned) > 0 && !w.warns {
			t.Errorf("node 0 warned: %q", warned)
		}
	})
	n := tr.options(t, "sender")
	n.Heartbeat, n.Warn = o.Heartbeat, warn
	w.importer = openNode(t, n)
	return w
}

func (w *far) ask(t *testing.T, method string, arg, answer any) {
	t.Helper()
	if err := w.there.Call("There."+method, arg, answer); err != nil {
		t.Fatalf("node 0: %s: %v", method, err)
	}
}

// tell is ask without an answer.
func (w *far) tell(t *testing.T, method string, arg any) {
	t.Helper()
	w.ask(t, method, arg, new(bool))
}

// export makes one for the sender, unless it names others.
func (w *far) export(t *testing.T, e FarExport) {
	t.Helper()
	if e.Peers == nil {
		e.Peers = sender.Peers
	}
	w.tell(t, "Export", e)
}

func (w *far) imports(t *testing.T, id uint32) *Import {
	t.Helper()
	i, err := w.importer.Import(testContext(t), id, w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.settle(t, i)
	return i
}

// pair is export 1, whose notifications wait, and its import.
func (w *far) pair(t *testing.T, size int, o ExportOptions) *Import {
	t.Helper()
	w.export(t, FarExport{ID: 1, Bytes: size, Options: o})
	w.tell(t, "Want", Wanting{1, "block"})
	return w.imports(t, 1)
}

// has fails the test if the bytes from an offset of export 1 are not as they should be.
func (w *far) has(t *testing.T, off int, want string) {
	t.Helper()
	var got []byte
	if w.ask(t, "Look", Place{1, off, len(want)}, &got); string(got) != want {
		t.Errorf("at %d there is %.40q, not %.40q", off, got, want)
	}
}

// equal compares export 1 with memory here.
func (w *far) equal(t *testing.T, local []byte) {
	t.Helper()
	var sum uint64
	w.ask(t, "Sum", uint32(1), &sum)
	if sum == crc64.Checksum(local, crc) {
		return
	}
	var remote []byte
	w.ask(t, "Look", Place{1, 0, len(local)}, &remote)
	t.Fatalf("byte %d differs", firstDifference(local, remote))
}

func (w *far) notification(t *testing.T, id uint32) (n Notification) {
	t.Helper()
	w.ask(t, "Wait", id, &n)
	return n
}

// watch begins Watch. The answer is its error.
func (w *far) watch(x Watching) (answer chan error) {
	answer = make(chan error, 1)
	go func() { answer <- w.there.Call("There.Watch", x, new(bool)) }()
	return answer
}
