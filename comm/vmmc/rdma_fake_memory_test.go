package vmmc

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"pinwheel/internal/clock"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// An export that can't be registered is asked for again, and counts for nothing meanwhile.
func TestFailedRegistrationIsTriedAgain(t *testing.T) {
	warned := make(chan string, 99)
	w := overFake(t).begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
	d := fakeOf(w.exporter)
	d.change(func() { d.full = true })
	memory := w.memory(t, 1<<20)
	w.export(t, 1, memory, sender, ExportOptions{})
	i, err := w.importer.Import(testContext(t), 1, w.address)
	if err != nil {
		t.Fatal(err)
	}
	if i.AwaitRDMA(context.Background()) {
		t.Error("messages go by RDMA")
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "come through its connection") {
		t.Errorf("warned %q", m)
	}
	testwait.Until(t, "nothing is booked", func() bool { return registeredBytes(w.exporter) == 0 })
	send(t, i, "hello", 10, SendOptions{})
	arrives(t, memory, 10, "hello")
	d.change(func() { d.full = false })
	testwait.Until(t, "RDMA", func() bool {
		send(t, i, "again", 10, SendOptions{})
		return i.RDMA()
	})
	if len(warned) > 0 {
		t.Errorf("warned %q again", <-warned)
	}
}

// receiver is the exporter's, of its only importer.
func (w *world) receiver() *rdmaReceiver {
	w.exporter.mu.Lock() // and unlocked: it is taken after the receiver's
	defer w.exporter.mu.Unlock()
	for _, in := range w.exporter.inbound {
		return in.rdma
	}
	panic("no importer")
}

// A lease that is registered for long holds nobody else up.
func TestSlowRegistrationHoldsNobodyUp(t *testing.T) {
	w := overFake(t).begin(t)
	memory, _, i := w.pair(t, 100, ExportOptions{})
	d := fakeOf(w.exporter)
	slow := make(chan struct{})
	d.change(func() { d.slow = slow })
	w.export(t, 2, w.memory(t, 100), sender, ExportOptions{})
	second, err := w.importer.Import(testContext(t), 2, w.address)
	if err != nil {
		t.Fatal(err)
	}
	testwait.Until(t, "it is being registered", func() bool {
		r := w.receiver()
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.underWay != 0
	})
	i.link.mu.Lock()
	i.link.rdma.holder.Recalled(i.number, clock.NowNs()) // it yields
	i.link.mu.Unlock()
	send(t, i, "through", 0, SendOptions{})
	arrives(t, memory, 0, "through")
	close(slow)
	w.settle(t, second)
}

// The end of a node waits for memory that is in use, and after it there is none.
func TestNothingIsRegisteredAfterTheEnd(t *testing.T) {
	w := overFake(t).begin(t)
	w.pair(t, 1<<20, ExportOptions{})
	f := &w.importer.fabric
	src := outside(t, 1<<16)
	var s source
	if err := f.use(&s, mem.RangeOf(src), opSend); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error, 1)
	go func() { closed <- w.importer.Close() }()
	testwait.Until(t, "the end waits", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.unused != nil
	})
	var late source
	if err := f.use(&late, mem.RangeOf(src), opSend); !errors.Is(err, ErrClosed) {
		t.Errorf("another use: %v", err)
	}
	f.release(&s)
	f.release(&late)
	if err := testwait.Receive(t, "the end", closed); err != nil {
		t.Error(err)
	}
	if err := f.use(&late, mem.RangeOf(src), opSend); !errors.Is(err, ErrClosed) {
		t.Errorf("a use after the end: %v", err)
	}
}

func TestSendBesideCloseEnds(t *testing.T) {
	for range 10 {
		w := overFake(t).begin(t)
		w.importer.opt.Warn = func(string) { w.importer.Stats() } // it may ask the node
		_, _, i := w.pair(t, 1<<20, ExportOptions{})
		src := outside(t, 1<<16)
		var senders sync.WaitGroup
		for range 3 {
			senders.Go(func() {
				for i.Send(context.Background(), src, 0, SendOptions{}) == nil {
				}
			})
		}
		if err := w.importer.Close(); err != nil {
			t.Error(err)
		}
		senders.Wait()
	}
}
