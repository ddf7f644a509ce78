package vmmc

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
)

// endSentences are the sentences of what ends, well or not.
var endSentences = []sentence{
	{"4.5 after Unimport nothing can be sent, and the proxy addresses are free", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 100, ExportOptions{})
		r, err := i.Proxy()
		if err != nil {
			t.Fatal(err)
		}
		send(t, i, "kept", 0, SendOptions{})
		i.Unimport()
		ctx := testContext(t)
		if err := i.Send(ctx, []byte("lost"), 0, SendOptions{}); !errors.Is(err, ErrUnimported) {
			t.Errorf("Send: %v", err)
		}
		if _, err := i.SendAsync([]byte("lost"), 0, SendOptions{Notify: true}); !errors.Is(err, ErrUnimported) {
			t.Errorf("SendAsync: %v", err)
		}
		if err := w.importer.SendTo(ctx, []byte("lost"), r.Start, SendOptions{}); !errors.Is(err, ErrBounds) {
			t.Errorf("SendTo: %v", err)
		}
		if _, err := i.Proxy(); !errors.Is(err, ErrUnimported) {
			t.Errorf("Proxy: %v", err)
		}
		if err := e.Unexport(ctx); err != nil || string(memory[:4]) != "kept" {
			t.Errorf("%v; has %q", err, memory[:4])
		}
	}},
	{"4.5 after Unexport all imports are gone", func(t *testing.T, w *world) {
		_, e, i := w.pair(t, 100, ExportOptions{})
		another := w.imports(t, 1)
		if err := e.Unexport(testContext(t)); err != nil {
			t.Fatal(err)
		}
		for _, i := range []*Import{i, another} {
			testwait.Receive(t, "the end of the import", i.Done())
			if err := i.Send(testContext(t), []byte("x"), 0, SendOptions{}); !errors.Is(err, ErrUnexported) {
				t.Errorf("got %v", err)
			}
			i.Unimport()
		}
		if err := e.Unexport(testContext(t)); !errors.Is(err, ErrNotExported) {
			t.Errorf("a second Unexport: %v", err)
		}
		if _, err := e.Wait(testContext(t)); !errors.Is(err, ErrUnexported) {
			t.Errorf("Wait: %v", err)
		}
	}},
	{"4.5 when Unexport returns, messages have been delivered, and nothing lands any more", func(t *testing.T, w *world) {
		for range 20 {
			memory, e, i := w.pair(t, 70_000, ExportOptions{})
			sent := atomic.NewUint64(0)
			var senders sync.WaitGroup
			senders.Go(func() {
				b := make([]byte, 70_000)
				for k := uint64(1); ; k++ {
					binary.NativeEndian.PutUint64(b, k)
					if err := i.Send(context.Background(), b, 0, SendOptions{}); err != nil {
						if !errors.Is(err, ErrUnexported) {
							t.Error(err)
						}
						return
					}
					sent.Store(k)
				}
			})
			testwait.Until(t, "a message", func() bool { return sent.Load() > 0 })
			before := sent.Load()
			if err := e.Unexport(testContext(t)); err != nil {
				t.Fatal(err)
			}
			if has := wordAt(memory, 0).Load(); has < before {
				t.Errorf("message %d had been sent, message %d arrived", before, has)
			}
			for k := range memory {
				memory[k] = 'x'
			}
			senders.Wait()
			if k := slices.IndexFunc(memory, func(c byte) bool { return c != 'x' }); k >= 0 {
				t.Fatalf("byte %d was overwritten after Unexport", k)
			}
			if w.alloc {
				if err := w.exporter.Free(memory); err != nil {
					t.Fatal(err)
				}
			}
		}
	}},
	{"4.5 Unexport has a non-blocking version", func(t *testing.T, w *world) {
		_, e, i := w.pair(t, 100, ExportOptions{})
		gone, err := e.UnexportAsync()
		if err != nil {
			t.Fatal(err)
		}
		testwait.Receive(t, "the end of the export", gone)
		testwait.Receive(t, "the end of the import", i.Done())
	}},
	{"handlers that panic are contained", func(t *testing.T, w *world) {
		warned := make(chan string, 9)
		w = w.begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
		_, e, i := w.pair(t, 10, ExportOptions{})
		calls := make(chan uint16, 9)
		e.Handle(func(n Notification) {
			if n.Tag == 0 {
				panic("oh")
			}
			calls <- n.Tag
		})
		send(t, i, "x", 0, SendOptions{Notify: true, Tag: 0})
		send(t, i, "x", 0, SendOptions{Notify: true, Tag: 1})
		if got := testwait.Receive(t, "the next call", calls); got != 1 || len(warned) != 1 {
			t.Errorf("tag %d; warned %d times", got, len(warned))
		}
	}},
	{"a node that closes leaves ErrPeerGone to its importers", func(t *testing.T, w *world) {
		_, _, i := w.pair(t, 10, ExportOptions{})
		h := w.importer.ImportAsync(99, w.address)
		begun(t, w.importer, 99, w.address)
		if err := w.exporter.Close(); err != nil {
			t.Fatal(err)
		}
		testwait.Receive(t, "the end of the import", i.Done())
		if err := i.Send(testContext(t), []byte("x"), 0, SendOptions{}); !errors.Is(err, ErrPeerGone) {
			t.Errorf("Send: %v", err)
		}
		if _, err := h.Result(); !errors.Is(err, ErrPeerGone) {
			t.Errorf("an import that waited: %v", err)
		}
	}},
}
