package vmmc

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// A connection through which nothing is imported any more is a place at the exporter that somebody else could have.
func TestConnectionIsGivenUpWhenNothingIsImported(t *testing.T) {
	w := transports[0].begin(t)
	w.export(t, 1, w.memory(t, 100), sender, ExportOptions{})
	n := openNode(t, Options{Name: "sender", Heartbeat: time.Second})
	connections := func() (there, here int) {
		w.exporter.mu.Lock()
		there = len(w.exporter.inbound)
		w.exporter.mu.Unlock()
		n.mu.Lock()
		here = len(n.outbound)
		n.mu.Unlock()
		return there, here
	}
	var sent uint64
	for round := range 2 {
		i, err := n.Import(testContext(t), 1, w.address)
		if err != nil {
			t.Fatal(err)
		}
		if there, here := connections(); there != 1 || here != 1 {
			t.Fatalf("%d connections there, %d here", there, here)
		}
		send(t, i, "x", 0, SendOptions{})
		sent++
		if round == 1 {
			i.link.closeSpare() // too early: it is needed
			if err := i.Err(); err != nil {
				t.Fatal(err)
			}
		}
		i.Unimport()
		testwait.Until(t, "the end of the connection", func() bool { there, here := connections(); return there+here == 0 })
		if got := n.Stats().Total.Sent.Sends; got != sent {
			t.Errorf("%d messages were counted, not %d", got, sent)
		}
	}
}

// Who asks for an import at the moment at which the connection is given up gets another one.
func TestImportFindsAConnectionThatIsJustGivenUp(t *testing.T) {
	w := transports[0].begin(t)
	_, _, i := w.pair(t, 100, ExportOptions{})
	old := i.link
	i.Unimport()
	old.closeSpare()
	if _, err := old.begin(1); !errors.Is(err, errSpare) {
		t.Fatal(err)
	}
	w.importer.mu.Lock()
	d := &dialing{done: make(chan struct{}), out: old} // as those have it who waited for it
	close(d.done)
	w.importer.outbound[w.address] = d
	w.importer.mu.Unlock()
	go func() { // as outbound.end does, before which Import asks again and again
		time.Sleep(10 * time.Millisecond)
		w.importer.mu.Lock()
		delete(w.importer.outbound, w.address)
		w.importer.mu.Unlock()
	}()
	if again := w.imports(t, 1); again.link == old {
		t.Error("it got the old connection")
	}
}

// Other memory for an export takes as long as its copy does: nobody waits for that but Unexport.
func TestMemoryIsCopiedWithoutHoldingUpTheNode(t *testing.T) {
	w := transports[0].begin(t)
	memory, e, i := w.pair(t, 100, ExportOptions{})
	send(t, i, "kept", 0, SendOptions{})
	i.Unimport()
	n := w.exporter
	testwait.Until(t, "nobody imports it", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.exporter.Importers(1) == 0
	})
	n.mu.Lock()
	e.unreturned = true // as after an importer that was silent
	old, err := unix.FcntlInt(uintptr(e.block.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = n.exporter.Unexport(1)
	}
	select {
	case <-e.gone:
		t.Error("it was copied while the node was locked")
	default:
	}
	n.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(old)
	testwait.Receive(t, "the end of the export", e.gone)
	if _, err := unix.Pwrite(old, []byte("late"), 0); err != nil || string(memory[:4]) != "kept" {
		t.Errorf("has %q, %v", memory[:4], err)
	}
	if err := n.Free(memory); err != nil {
		t.Error(err)
	}
}

// Stores go on to land in the memory of an exporter if the area can't get memory of its own again: the exporter must
// not take it for returned.
func TestAreaThatKeepsTheMemoryOfItsExporter(t *testing.T) {
	for what, end := range map[string]func(i *Import){
		"unimport": (*Import).Unimport,
		"unexport": func(*Import) {},
	} {
		t.Run(what, func(t *testing.T) {
			w := transports[0].begin(t, func(o *Options) { o.RevokeTimeout, o.Warn = 50*time.Millisecond, quiet })
			warned := make(chan string, 9)
			w.importer.opt.Warn = func(m string) { warned <- m }
			memory, e, i := w.pair(t, 4096, ExportOptions{})
			local, err := w.importer.Alloc(4096)
			if err != nil {
				t.Fatal(err)
			}
			m, err := i.Map(0, local, MapOptions{})
			if err != nil {
				t.Fatal(err)
			}
			b := m.block
			was := func(fd int) int { // of the file
				w.importer.mu.Lock()
				defer w.importer.mu.Unlock()
				fd, b.fd = b.fd, fd
				return fd
			}
			fd := was(-1) // it can't be mapped
			defer func() { was(fd) }()
			wordAt(local, 8).Store(1)
			end(i)
			if err := e.Unexport(testContext(t)); err != nil {
				t.Fatal(err)
			}
			if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "stays mapped") {
				t.Errorf("warned %q", m)
			}
			wordAt(local, 8).Store(2)
			if got := wordAt(memory, 8).Load(); got != 1 {
				t.Errorf("the memory has %d after Unexport", got)
			}
		})
	}
}

func TestOnePeerHasAShareOfTheConnections(t *testing.T) {
	warned := make(chan string, 9)
	w := transports[0].begin(t, func(o *Options) {
		o.MaxConnections, o.Warn = 4, func(m string) { // 2 of each peer
			select {
			case warned <- m:
			default:
			}
		}
	})
	w.export(t, 1, w.memory(t, 100), Permissions{Peers: []string{"sender", "other"}}, ExportOptions{})
	for range 2 {
		if _, err := w.node(t, "sender").Import(testContext(t), 1, w.address); err != nil {
			t.Fatal(err)
		}
	}
	third := w.node(t, "sender").ImportAsync(1, w.address) // it may try again
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "one peer") || !strings.Contains(m, `"sender"`) {
		t.Errorf("warned %q", m)
	}
	if _, err := w.node(t, "other").Import(testContext(t), 1, w.address); err != nil {
		t.Errorf("another peer: %v", err)
	}
	third.Cancel()
	if i, err := third.Result(); err == nil {
		t.Errorf("a third one: %v", i)
	}
}

func TestOnePeerHasAShareOfTheImporters(t *testing.T) {
	w := transports[0].begin(t)
	p := Permissions{Peers: []string{"sender", "other"}, MaxImporters: 3, MaxPerPeer: 2}
	w.export(t, 1, w.memory(t, 100), p, ExportOptions{})
	first := w.imports(t, 1)
	w.imports(t, 1)
	again := w.node(t, "sender") // another connection of the same peer
	if _, err := again.Import(testContext(t), 1, w.address); !errors.Is(err, ErrTooManyImporters) {
		t.Errorf("a third one: %v", err)
	}
	if _, err := w.node(t, "other").Import(testContext(t), 1, w.address); err != nil {
		t.Errorf("another peer: %v", err)
	}
	first.Unimport()
	testwait.Until(t, "its end", func() bool {
		w.exporter.mu.Lock()
		defer w.exporter.mu.Unlock()
		return w.exporter.exporter.Importers(1) == 2
	})
	if _, err := again.Import(testContext(t), 1, w.address); err != nil {
		t.Errorf("in place of one that ended: %v", err)
	}
}

func TestMessagesThatWaitAreLimitedByTheOptions(t *testing.T) {
	w := transports[0].begin(t)
	w.importer = openNode(t, Options{Name: "sender", MaxOps: 3})
	_, e, i := w.pair(t, 10, ExportOptions{Queue: 1})
	e.Block()
	var err error
	sent := 0
	for ; err == nil; sent++ {
		_, err = i.SendAsync([]byte("x"), 0, SendOptions{Notify: true})
	}
	if sent != 1+3+1 || !errors.Is(err, ErrTooManyOps) { // one has the credit, three wait, one is refused
		t.Errorf("%v at message %d", err, sent)
	}
}

// Linux says so of a file that could be executed (vm.memfd_noexec).
func TestSharedMemoryCantBeExecuted(t *testing.T) {
	probe, err := unix.MemfdCreate("probe", unix.MFD_NOEXEC_SEAL)
	if err != nil {
		t.Skipf("needs Linux 6.3: %v", err)
	}
	unix.Close(probe)
	fd, err := newMemfd(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	const execSeal = 0x20 // F_SEAL_EXEC of <linux/fcntl.h>
	if seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0); err != nil || seals&execSeal == 0 {
		t.Errorf("seals %#x, %v", seals, err)
	}
}

// Who has read the eventfd and taken everything finds it quiet.
func TestEventfdIsQuietWhenNothingIsLeft(t *testing.T) {
	w := transports[0].begin(t)
	_, e, i := w.pair(t, 10, ExportOptions{})
	fd, err := e.FD()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	readable := func() bool {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(p, 0)
		return err == nil && n == 1
	}
	for range 3 {
		send(t, i, "x", 0, SendOptions{Notify: true})
	}
	testwait.Until(t, "three notifications", func() bool { return e.node.Stats().Exports[0].Queued == 3 })
	if !readable() {
		t.Error("it is not readable")
	}
	if _, err := unix.Read(fd, make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	for k := 0; ; k++ {
		if _, err := e.Wait(over); err != nil {
			if k != 3 {
				t.Errorf("%d notifications", k)
			}
			break
		}
	}
	if readable() {
		t.Error("it is readable again")
	}
}

// A Wait changes nothing for others who wait.
func TestWaitWakesNobodyElse(t *testing.T) {
	w := transports[0].begin(t)
	_, e, _ := w.pair(t, 10, ExportOptions{})
	changed := func() chan struct{} {
		e.node.mu.Lock()
		defer e.node.mu.Unlock()
		return e.changed
	}
	before := changed()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := e.Wait(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if changed() != before {
		t.Error("it woke those who wait")
	}
}
