package vmmc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// sentence is a test of what one says.
type sentence struct {
	name string
	test func(t *testing.T, w *world)
}

// sentences are what Dubnicki et al., "Software Support for Virtual Memory-Mapped Communication", say
// of VMMC, by section; notifySentences are those of notifications, updateSentences of automatic update, endSentences of
// ends. Each holds over each transport.
var sentences = []sentence{
	{"3 communication may take place only after the receiver gives permission", func(t *testing.T, w *world) {
		w.export(t, 1, w.memory(t, 100), Permissions{}, ExportOptions{})
		if i, err := w.importer.Import(testContext(t), 1, w.address); !errors.Is(err, ErrNotPermitted) {
			t.Errorf("got %v, %v of an export that permits nobody", i, err)
		}
	}},
	{"3 the exporter can restrict possible importers", func(t *testing.T, w *world) {
		w.export(t, 1, w.memory(t, 100), sender, ExportOptions{})
		w.imports(t, 1)
		if _, err := w.node(t, "other").Import(testContext(t), 1, w.address); !errors.Is(err, ErrNotPermitted) {
			t.Errorf("another one: %v", err)
		}
	}},
	{"3 the exporter can restrict the number of importers", func(t *testing.T, w *world) {
		w.export(t, 1, w.memory(t, 100), Permissions{Peers: []string{"sender"}, MaxImporters: 2}, ExportOptions{})
		first := w.imports(t, 1)
		w.imports(t, 1)
		if _, err := w.importer.Import(testContext(t), 1, w.address); !errors.Is(err, ErrTooManyImporters) {
			t.Errorf("a third: %v", err)
		}
		first.Unimport()
		w.imports(t, 1)
	}},
	{"3 transferred data do not overwrite addresses outside the buffer", func(t *testing.T, w *world) {
		around := w.memory(t, 3000)
		for k := range around {
			around[k] = 'x'
		}
		w.export(t, 1, around[1000:2001], sender, ExportOptions{})
		i := w.imports(t, 1)
		if i.Bytes() != 1001 {
			t.Errorf("%d bytes", i.Bytes())
		}
		for _, m := range []struct{ off, n uint64 }{
			{1001, 1}, {1000, 2}, {0, 1002}, {^uint64(0), 1}, {^uint64(0), 2}, {1 << 63, 1 << 20},
		} {
			if err := i.Send(testContext(t), make([]byte, m.n), m.off, SendOptions{}); !errors.Is(err, ErrBounds) {
				t.Errorf("%d bytes at %d: %v", m.n, m.off, err)
			}
		}
		send(t, i, "first", 0, SendOptions{})
		send(t, i, "last", 1001-4, SendOptions{})
		arrives(t, around, 1000, "first")
		arrives(t, around, 2001-4, "last")
		for k, c := range around {
			if outside := k < 1000 || k >= 2001; outside && c != 'x' {
				t.Fatalf("byte %d was overwritten with %q", k, c)
			}
		}
	}},
	{"3 deliberate update transfers from any address of the caller", func(t *testing.T, w *world) {
		memory, _, i := w.pair(t, 300_000, ExportOptions{})
		src := make([]byte, 250_001)
		for k := range src {
			src[k] = byte(k * 7)
		}
		done := make(chan error, 2)
		op, err := i.SendAsync(src[1:], 3, SendOptions{Done: func(err error) { done <- err }})
		if err == nil {
			err = errors.Join(op.Wait(testContext(t)), testwait.Receive(t, "Done", done))
		}
		if op.Cancel(errors.New("too late")); len(done) > 0 {
			t.Error("Done was called twice")
		}
		if err != nil || !bytes.Equal(memory[3:3+250_000], src[1:]) || memory[2] != 0 || memory[250_003] != 0 {
			t.Errorf("%v, or other bytes arrived", err)
		}
	}},
	{"3 deliberate updates are delivered in order", func(t *testing.T, w *world) {
		memory, _, i := w.pair(t, 16, ExportOptions{})
		const rounds = 2000
		var ends sync.WaitGroup
		ends.Go(func() {
			var b [8]byte
			for k := range uint64(rounds) {
				for _, off := range []uint64{0, 8} {
					binary.NativeEndian.PutUint64(b[:], k+1)
					if err := i.Send(context.Background(), b[:], off, SendOptions{}); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
		first, second := wordAt(memory, 0), wordAt(memory, 8)
		testwait.Until(t, "the last message", func() bool {
			late := second.Load()
			if early := first.Load(); early < late {
				t.Fatalf("the first message of round %d is not there, the second of round %d is", early, late)
			}
			return late == rounds
		})
		ends.Wait()
	}},
	{"3 there is no receive, and messages don't disturb the receiver", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 100, ExportOptions{})
		e.Handle(func(Notification) { t.Error("a message without notification called the handler") })
		send(t, i, "hello", 10, SendOptions{})
		arrives(t, memory, 10, "hello")
		send(t, i, "again", 10, SendOptions{})
		arrives(t, memory, 10, "again")
	}},
	{"4 proxy addresses stand for the buffer", func(t *testing.T, w *world) {
		memory, _, i := w.pair(t, 5000, ExportOptions{})
		r, err := i.Proxy()
		if err != nil || r.Len() < 5000 {
			t.Fatal(r, err)
		}
		ctx := testContext(t)
		if err := w.importer.SendTo(ctx, []byte("there"), r.Start+4000, SendOptions{}); err != nil {
			t.Fatal(err)
		}
		arrives(t, memory, 4000, "there")
		for _, a := range []mem.Addr{r.Start + 4996, r.End, r.Start - 1} {
			if err := w.importer.SendTo(ctx, []byte("there"), a, SendOptions{}); !errors.Is(err, ErrBounds) {
				t.Errorf("to %#x: %v", uintptr(a), err)
			}
		}
	}},
	{"4.1 an import waits until a matching buffer has been exported", func(t *testing.T, w *world) {
		h := w.importer.ImportAsync(7, w.address)
		begun(t, w.importer, 7, w.address)
		w.export(t, 1, w.memory(t, 100), sender, ExportOptions{})
		w.imports(t, 1) // came after it, and is granted
		select {
		case <-h.Done():
			t.Fatalf("done before the export")
		default:
		}
		w.export(t, 7, w.memory(t, 200), sender, ExportOptions{})
		if i, err := h.Result(); err != nil || i.Bytes() != 200 {
			t.Errorf("got %v, %v", i, err)
		}
	}},
	{"4.1 an import waits for an exporter that is not there yet", func(t *testing.T, w *world) {
		if w.listen(t) == loopbackPort(t) {
			t.Skip("a port that nobody has yet can't be reserved")
		}
		address := socket(t)
		h := w.importer.ImportAsync(7, address)
		o := w.options(t, "late")
		o.Listen = []string{address}
		late := openNode(t, o)
		memory := make([]byte, 100)
		if _, err := late.Export(7, memory, sender, ExportOptions{}); err != nil {
			t.Fatal(err)
		}
		if i, err := h.Result(); err != nil || i.Bytes() != 100 {
			t.Errorf("got %v, %v", i, err)
		}
	}},
	{"4.1 an import can be given up", func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(testContext(t))
		h := w.importer.ImportAsync(7, w.address)
		go func() { h.Cancel(); cancel() }()
		if _, err := w.importer.Import(ctx, 7, w.address); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if _, err := h.Result(); !errors.Is(err, context.Canceled) {
			t.Errorf("not blocking: %v", err)
		}
		w.export(t, 7, w.memory(t, 100), Permissions{Peers: sender.Peers, MaxImporters: 1}, ExportOptions{})
		w.imports(t, 7) // the ones given up don't count
	}},
	{"4.1 an identifier names one buffer", func(t *testing.T, w *world) {
		e := w.export(t, 1, w.memory(t, 100), sender, ExportOptions{})
		if _, err := w.exporter.Export(1, make([]byte, 9), sender, ExportOptions{}); !errors.Is(err, ErrExported) {
			t.Errorf("a second export: %v", err)
		}
		if err := e.Unexport(testContext(t)); err != nil {
			t.Fatal(err)
		}
		w.export(t, 1, w.memory(t, 200), sender, ExportOptions{})
		if i := w.imports(t, 1); i.Bytes() != 200 {
			t.Errorf("%d bytes", i.Bytes())
		}
	}},
	{"4.2 a message that was sent may be changed", func(t *testing.T, w *world) {
		memory, _, i := w.pair(t, 100_000, ExportOptions{})
		src := bytes.Repeat([]byte{1}, 100_000)
		if err := i.Send(testContext(t), src, 0, SendOptions{}); err != nil {
			t.Fatal(err)
		}
		clear(src)
		send(t, i, "\x02", 99_999, SendOptions{})
		arrives(t, memory, 99_999, "\x02")
		if n := bytes.Count(memory, []byte{1}); n != 99_999 {
			t.Errorf("%d bytes of the message arrived", n)
		}
	}},
	{"4.2 a non-blocking send has a handle", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 100, ExportOptions{Queue: 1})
		e.Block()
		var ops []*Op
		for k := range byte(3) {
			op, err := i.SendAsync([]byte{k + 1}, uint64(k), SendOptions{Notify: true})
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, op)
		}
		if err := ops[0].Wait(testContext(t)); err != nil || memory[0] != 1 {
			t.Errorf("%v; has %d", err, memory[0])
		}
		for range ops {
			wait(t, e)
		}
		for k, op := range ops {
			<-op.Sent()
			if err := op.Wait(testContext(t)); err != nil || memory[k] != byte(k+1) {
				t.Errorf("message %d: %v; has %d", k, err, memory[k])
			}
		}
	}},
	{"4.2 a message that other requests follow is acknowledged", func(t *testing.T, w *world) {
		_, _, i := w.pair(t, 100, ExportOptions{})
		for range 50 {
			op, err := i.SendAsync([]byte("x"), 0, SendOptions{})
			if err != nil {
				t.Fatal(err)
			}
			w.importer.ImportAsync(99, w.address).Cancel()
			if err := op.Wait(testContext(t)); err != nil {
				t.Fatal(err)
			}
		}
	}},
	{"4.1 an import may end while it is granted", func(t *testing.T, w *world) {
		w.export(t, 1, w.memory(t, 10), sender, ExportOptions{})
		for range 100 {
			h := w.importer.ImportAsync(1, w.address)
			h.Cancel()
			if i, err := h.Result(); err == nil {
				i.Unimport()
			} else if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	}},
	{"messages that wait are limited, and nothing is sent of those that are too many", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 10, ExportOptions{Queue: 1})
		e.Block()
		var err error
		for k := 0; err == nil && k < 3*i.link.node.opt.MaxOps; k++ {
			_, err = i.SendAsync([]byte("x"), 0, SendOptions{Notify: true})
		}
		if !errors.Is(err, ErrTooManyOps) {
			t.Error(err)
		}
		if i.Shared() { // otherwise there may be room again
			_, err := i.SendAsync([]byte("z"), 0, SendOptions{Notify: true})
			if !errors.Is(err, ErrTooManyOps) || memory[0] != 'x' {
				t.Errorf("it has %q after %v", memory[0], err)
			}
		}
	}},
}

func TestConformance(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			for _, s := range slices.Concat(sentences, notifySentences, updateSentences, endSentences) {
				t.Run(s.name, func(t *testing.T) {
					s.test(t, tr.begin(t))
				})
			}
		})
	}
}
