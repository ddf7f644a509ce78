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
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/verbstest"
)

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

// Peer starts a process with a bufferID of connectedPeer, and returns its address.
func (x *There) Peer(bufferID string, address *string) error {
	dir := peerDir(x.t)
	_, x.kill = testwait.Peer(x.t, "VMMC_TEST_PEER="+bufferID)
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
