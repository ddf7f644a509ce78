package vmmc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// registeredBy returns a use of memory by a Manager of the test's own.
func registeredBy(t *testing.T, n *Node, b []byte) *pinwheel.Use {
	t.Helper()
	p, err := n.Provider()
	if err != nil {
		t.Fatal(err)
	}
	m, err := pinwheel.New(pinwheel.Options{Provider: p, Policy: pinwheel.OnDemand})
	if err != nil {
		t.Fatal(err)
	}
	thread, err := m.Thread()
	if err != nil {
		t.Fatal(err)
	}
	u := new(pinwheel.Use)
	if err := thread.Acquire(u, mem.RangeOf(b), 0, 1, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		thread.Release(u)
		thread.Close()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return u
}

// mappedFile maps a file of n bytes, shared and read-only.
func mappedFile(t *testing.T, n int) (b, content []byte) {
	t.Helper()
	content = bytes.Repeat([]byte("content "), n/8)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if b, err = unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return b, content
}

func TestRDMAOutOfMemoryThatTheCallerRegistered(t *testing.T) {
	w := overRDMA(t).begin(t)
	memory, _, i := w.pair(t, 1<<20, ExportOptions{})
	src, content := mappedFile(t, 100_000)
	u := registeredBy(t, w.importer, src)
	keepLease(t, i)
	before := w.importer.fabric.manager.Stats().Cache
	for _, n := range []int{1, 100, copyBytes + 1, len(src)} {
		clear(memory)
		op, err := i.SendAsync(src[:n], 5, SendOptions{Registered: u})
		if err != nil {
			t.Fatal(n, err)
		}
		if err := op.Wait(testContext(t)); err != nil {
			t.Fatal(n, err)
		}
		if !bytes.Equal(memory[5:][:n], content[:n]) || memory[5+n] != 0 {
			t.Errorf("%d bytes: others arrived", n)
		}
	}
	if after := w.importer.fabric.manager.Stats().Cache; after.First != before.First {
		t.Error("the node has registered something")
	}
	if n := throughConnection(i); n != 0 {
		t.Errorf("%d frames went through the connection", n)
	}
	if err := i.Send(testContext(t), []byte("plain"), 0, SendOptions{NoRDMA: true}); err != nil {
		t.Error(err)
	}
	arrives(t, memory, 0, "plain")
	if n := throughConnection(i); n != 1 {
		t.Errorf("%d frames went through the connection", n)
	}
}

// An inline request has the processor read its bytes.
func TestWhatTheCallerRegisteredIsNotInline(t *testing.T) {
	w := overFake(t).begin(t)
	_, _, i := w.pair(t, 100, ExportOptions{})
	src := outside(t, 1<<12)
	u := registeredBy(t, w.importer, src)
	d := fakeOf(w.importer)
	keepLease(t, i)
	for want, o := range []SendOptions{{Registered: u}, {}} {
		begun := 0
		d.change(func() { begun = d.inlined })
		op, err := i.SendAsync(src[:8], 0, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := op.Wait(testContext(t)); err != nil {
			t.Error(err)
		}
		if d.change(func() { begun = d.inlined - begun }); begun != want {
			t.Errorf("%d inline requests, %d are right", begun, want)
		}
	}
}

// The processor must not read such memory, or the caller insists: the message fails, and those around it go through the
// connection.
func TestRDMAThatFailsUnderMessagesThatInsist(t *testing.T) {
	w := overRDMA(t).begin(t)
	warned := make(chan string, 99)
	w.importer.opt.Warn = func(m string) { warned <- m }
	memory, _, i := w.pair(t, 1<<20, ExportOptions{})
	src, _ := mappedFile(t, 100_000)
	u := registeredBy(t, w.importer, src)
	var registered, plain []*Op
	keepLease(t, i)
	done := make(chan error, 100)
	for k := range 100 {
		if k == 50 {
			i.link.mu.Lock()
			i.link.rdma.qp.Fail()
			i.link.mu.Unlock()
		}
		o := SendOptions{Registered: u, Done: func(err error) { done <- err }}
		if k%2 > 0 { // or the node registers it
			o.Registered, o.RDMA = nil, true
		}
		op, err := i.SendAsync(src, 0, o)
		if err != nil && !errors.Is(err, ErrNoRDMA) {
			t.Fatal(err)
		}
		if err == nil {
			registered = append(registered, op)
		}
		if op, err = i.SendAsync(bytes.Repeat([]byte{byte(k)}, 5000), 200_000, SendOptions{}); err != nil {
			t.Fatal(err)
		}
		plain = append(plain, op)
	}
	failed := 0
	for _, op := range registered {
		if err := op.Wait(testContext(t)); errors.Is(err, ErrNoRDMA) {
			failed++
		} else if err != nil {
			t.Error(err)
		}
	}
	for _, op := range plain {
		if err := op.Wait(testContext(t)); err != nil {
			t.Error(err)
		}
	}
	heard := 0 // of those that failed
	for range registered {
		if testwait.Receive(t, "the end of a message", done) != nil {
			heard++
		}
	}
	if heard != failed || len(done) > 0 {
		t.Errorf("Done heard of %d messages that failed, of %d, and of %d too many", heard, failed, len(done))
	}
	if memory[200_000] != 99 {
		t.Errorf("the last message is %d", memory[200_000])
	}
	if failed+100-len(registered) == 0 {
		t.Error("none failed")
	}
	warningOf(t, i, warned)
	keepLease(t, i)
	op, err := i.SendAsync(src, 0, SendOptions{Registered: u})
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Wait(testContext(t)); err != nil {
		t.Error(err)
	}
}

func TestRDMAIsAwaited(t *testing.T) {
	w := overRDMA(t).begin(t)
	w.export(t, 1, w.memory(t, 100), sender, ExportOptions{})
	i, err := w.importer.Import(testContext(t), 1, w.address)
	if err != nil {
		t.Fatal(err)
	}
	if !i.AwaitRDMA(testContext(t)) || !i.RDMA() {
		t.Error("there is no RDMA")
	}
	i.Unimport()
	if i.AwaitRDMA(testContext(t)) {
		t.Error("RDMA to what was unimported")
	}
}

func TestNoRDMAForMessagesThatInsist(t *testing.T) {
	for _, tr := range transports {
		if strings.HasSuffix(tr.name, "rdma") {
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			w := tr.begin(t)
			_, _, i := w.pair(t, 4096, ExportOptions{})
			for _, o := range []SendOptions{
				{Registered: new(pinwheel.Use)}, {Registered: new(pinwheel.Use), Notify: true}, {RDMA: true}, {RDMA: true, Notify: true},
			} {
				if _, err := i.SendAsync([]byte("x"), 0, o); !errors.Is(err, ErrNoRDMA) {
					t.Error(err)
				}
				if err := i.Send(testContext(t), []byte("x"), 0, o); !errors.Is(err, ErrNoRDMA) {
					t.Error(err)
				}
			}
			if i.AwaitRDMA(testContext(t)) {
				t.Error("there is RDMA")
			}
			send(t, i, "x", 0, SendOptions{NoRDMA: true})
		})
	}
}

func TestFillWritesInPlace(t *testing.T) {
	for _, tr := range transports {
		t.Run(tr.name, func(t *testing.T) {
			w := tr.begin(t)
			memory, _, i := w.pair(t, 4096, ExportOptions{})
			stop := errors.New("stop")
			n, err := i.Fill(100, 50, func(b []byte) (int, error) {
				if len(b) != 50 || cap(b) != 50 {
					t.Errorf("%d bytes of %d", len(b), cap(b))
				}
				return copy(b, "in place"), stop
			})
			if !i.Shared() {
				if !errors.Is(err, ErrNotShared) {
					t.Error(err)
				}
				return
			}
			if n != 8 || err != stop || string(memory[100:108]) != "in place" {
				t.Errorf("%d, %v, %q", n, err, memory[100:108])
			}
			never := func([]byte) (int, error) { t.Error("it was called"); return 0, nil }
			if _, err := i.Fill(4000, 97, never); !errors.Is(err, ErrBounds) {
				t.Error(err)
			}
			i.Unimport()
			if _, err := i.Fill(0, 1, never); !errors.Is(err, ErrUnimported) {
				t.Error(err)
			}
		})
	}
}
