package vmmc

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// cutter is a way between an importer and an exporter that breaks, once, after some bytes in one direction.
type cutter struct {
	l    net.Listener
	to   string
	left atomic.Int64 // bytes until it breaks; negative: it does not
	back bool         // it counts those from the exporter
	was  atomic.Bool  // broken
}

func (c *cutter) serve() {
	for {
		a, err := c.l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("unix", c.to)
		if err != nil {
			a.Close()
			continue
		}
		go c.carry(b, a, !c.back)
		go c.carry(a, b, c.back)
	}
}

func (c *cutter) carry(to, from net.Conn, counts bool) {
	var err error
	for buf := make([]byte, 1); err == nil; {
		if _, err = from.Read(buf); err == nil && counts && c.left.Dec() == -1 {
			c.was.Store(true)
			break
		}
		if err == nil {
			_, err = to.Write(buf)
		}
	}
	to.Close()
	from.Close()
}

// Whenever a connection breaks, nobody waits for ever, the importer hears ErrPeerGone, and the exporter has all
// that the importer held.
func TestConnectionBreaksAfterEachByte(t *testing.T) {
	tr := transports[1]
	for _, back := range []bool{false, true} {
		w := tr.begin(t)
		c := &cutter{to: strings.TrimPrefix(w.address, "unix:"), back: back}
		address := socket(t)
		l, err := net.Listen("unix", strings.TrimPrefix(address, "unix:"))
		if err != nil {
			t.Fatal(err)
		}
		c.l = l
		go c.serve()
		memory := w.memory(t, 100)
		gone := 0
		for cut := int64(0); ; cut++ {
			c.left.Store(cut)
			c.was.Store(false)
			e := w.export(t, 1, memory, Permissions{Peers: sender.Peers, MaxImporters: 1}, ExportOptions{Queue: 1})
			e.Block()
			m := w.node(t, "sender")
			err := session(t, m, address, e)
			if err != nil && !errors.Is(err, ErrPeerGone) {
				t.Fatalf("after %d bytes: %v", cut, err)
			}
			if err != nil {
				gone++
			}
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if err := e.Unexport(testContext(t)); err != nil && !errors.Is(err, ErrNotExported) {
				t.Fatalf("after %d bytes: %v", cut, err)
			}
			if !c.was.Load() {
				break // the session is over before
			}
		}
		if gone < 50 {
			t.Errorf("only %d sessions were cut", gone)
		}
		l.Close()
	}
}

// session does what an importer can do.
func session(t *testing.T, m *Node, address string, e *Export) error {
	ctx := testContext(t)
	i, err := m.Import(ctx, 1, address)
	if errors.Is(err, ErrTooManyImporters) {
		return nil // the one before has not been forgotten: this is another connection
	}
	if err != nil {
		return err
	}
	op, err := i.SendAsync(make([]byte, 50), 50, SendOptions{Notify: true})
	if err != nil {
		return err
	}
	if err := op.Wait(ctx); err != nil {
		return err
	}
	if _, err := e.Wait(ctx); err != nil {
		t.Error(err) // it has arrived
	}
	if err := i.Send(ctx, []byte("x"), 0, SendOptions{Notify: true}); err != nil { // takes a credit that came back
		return err
	}
	if _, err := e.UnexportAsync(); err != nil {
		t.Error(err)
	}
	testwait.Receive(t, "the end of the import", i.Done())
	if err := i.Err(); !errors.Is(err, ErrUnexported) {
		return err
	}
	return nil
}

func TestManyImportersOfOneExport(t *testing.T) {
	for _, tr := range append(slices.Clone(transports[:3]), overRDMA(t)) {
		t.Run(tr.name, func(t *testing.T) {
			w := tr.begin(t)
			memory := w.memory(t, 256)
			e := w.export(t, 1, memory, sender, ExportOptions{})
			e.Block()
			w.imports(t, 1).Unimport() // what stays of it does so for one
			testwait.Until(t, "it is given back", func() bool { return w.exporter.Stats().Exports[0].Importers == 0 })
			before := resourcesNow(t)
			for k := range 256 {
				send(t, w.imports(t, 1), string([]byte{byte(k)}), uint64(k), SendOptions{Notify: true, Tag: uint16(k)})
			}
			for range 256 {
				if n := wait(t, e); memory[n.Offset] != byte(n.Tag) || n.Offset != uint64(n.Tag) {
					t.Errorf("got %+v of %d", n, memory[n.Offset])
				}
			}
			if err := e.Unexport(testContext(t)); err != nil {
				t.Error(err)
			}
			if after := resourcesNow(t); after.pinned != before.pinned {
				t.Errorf("VmPin was %d KiB before, and is %d after", before.pinned, after.pinned)
			}
		})
	}
}

func TestExportBeyondFourGiB(t *testing.T) {
	for _, tr := range []transport{transports[0], transports[2]} {
		t.Run(tr.name, func(t *testing.T) {
			w := tr.begin(t)
			const size = 5<<30 + 3
			memory, err := w.exporter.Alloc(size)
			if err != nil {
				t.Skipf("no address space for it: %v", err)
			}
			w.export(t, 1, memory, sender, ExportOptions{})
			i := w.imports(t, 1)
			send(t, i, "end", size-3, SendOptions{})
			arrives(t, memory, size-3, "end")
			if err := i.Send(testContext(t), []byte("end"), size-2, SendOptions{}); !errors.Is(err, ErrBounds) {
				t.Errorf("a byte beyond: %v", err)
			}
			if at := size - 3 - 1<<32; memory[at] != 0 || memory[mem.PageSize] != 0 {
				t.Error("it arrived elsewhere, too")
			}
		})
	}
}
