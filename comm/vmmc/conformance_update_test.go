package vmmc

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"pinwheel/internal/testwait"
)

// updateSentences are the sentences of automatic update.
var updateSentences = []sentence{
	{"3 automatic update propagates writes, and those after Unmap are local", func(t *testing.T, w *world) {
		memory, _, i := w.pair(t, 3*pageBytes, ExportOptions{})
		local, m := w.mapping(t, i, pageBytes, 2*pageBytes)
		wordAt(local, 8).Store(1)
		wordAt(local, 2*pageBytes-8).Store(2)
		flush(t, m)
		first, last := wordAt(memory, pageBytes+8), wordAt(memory, 3*pageBytes-8)
		if first.Load() != 1 || last.Load() != 2 || bytes.Count(memory[:pageBytes], []byte{0}) != pageBytes {
			t.Errorf("has %d and %d, and %.40x before the area", first.Load(), last.Load(), memory[:pageBytes])
		}
		if err := m.Unmap(); err != nil {
			t.Fatal(err)
		}
		wordAt(local, 8).Store(3)
		if err := m.Flush(testContext(t)); !errors.Is(err, ErrUnmapped) {
			t.Errorf("Flush after Unmap: %v", err)
		}
		send(t, i, "then", 0, SendOptions{}) // comes after it, if it comes
		if arrives(t, memory, 0, "then"); first.Load() != 1 {
			t.Errorf("%d was stored after Unmap", first.Load())
		}
	}},
	{"3 an address has one automatic update destination at a time", func(t *testing.T, w *world) {
		before, _, i := w.pair(t, pageBytes, ExportOptions{})
		after := w.memory(t, pageBytes)
		w.export(t, 2, after, sender, ExportOptions{})
		another := w.imports(t, 2)
		local, m := w.mapping(t, i, 0, pageBytes)
		if _, err := another.Map(0, local, MapOptions{}); !errors.Is(err, ErrInUse) {
			t.Errorf("a second one: %v", err)
		}
		wordAt(local, 16).Store(1)
		flush(t, m)
		if err := m.Unmap(); err != nil {
			t.Fatal(err)
		}
		m, err := another.Map(0, local, MapOptions{Interval: -1})
		if err != nil {
			t.Fatal(err)
		}
		wordAt(local, 16).Store(2)
		flush(t, m)
		if a, b := wordAt(before, 16).Load(), wordAt(after, 16).Load(); a != 1 || b != 2 {
			t.Errorf("has %d where it was mapped before, and %d where it is mapped", a, b)
		}
	}},
	{"4.3 an area is mapped to an import, within its bounds", func(t *testing.T, w *world) {
		_, _, i := w.pair(t, 2*pageBytes, ExportOptions{})
		local, err := w.importer.Alloc(uint64(2 * pageBytes))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.Map(uint64(pageBytes), local, MapOptions{}); !errors.Is(err, ErrBounds) {
			t.Errorf("a page beyond: %v", err)
		}
		m, err := i.Map(0, local, MapOptions{})
		if err != nil {
			t.Fatal(err)
		}
		i.Unimport()
		if err := m.Flush(testContext(t)); !errors.Is(err, ErrUnimported) {
			t.Errorf("Flush after Unimport: %v", err)
		}
		if _, err := i.Map(0, local, MapOptions{}); !errors.Is(err, ErrUnimported) {
			t.Errorf("Map after Unimport: %v", err)
		}
	}},
	{"4.4 a notification may come with every message of a mapping", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, pageBytes, ExportOptions{Queue: 2})
		e.Block()
		local, err := w.importer.Alloc(uint64(pageBytes))
		if err != nil {
			t.Fatal(err)
		}
		m, err := i.Map(0, local, MapOptions{Interval: -1, Notify: true, Tag: 5})
		if err != nil {
			t.Fatal(err)
		}
		notified := func(off int, want uint64) {
			t.Helper()
			n, at := wait(t, e), uint64(off)
			if n.Tag != 5 || n.Offset > at || n.Offset+n.Bytes < at+8 || n.Offset+n.Bytes > uint64(pageBytes) {
				t.Errorf("got %+v", n)
			}
			if got := wordAt(memory, off).Load(); got != want {
				t.Errorf("has %d when notified, not %d", got, want)
			}
		}
		for k := range uint64(10) {
			wordAt(local, 80).Store(k + 1)
			wordAt(local, 800).Store(k + 2)
			flush(t, m)
			notified(80, k+1)
			if err := m.Store(160, k+3); err != nil {
				t.Fatal(err)
			}
			notified(160, k+3)
			if err := m.Publish(testContext(t), 240, k+4); err != nil {
				t.Fatal(err)
			}
			notified(240, k+4)
		}
		if err := m.Unmap(); err != nil {
			t.Fatal(err)
		}
		if m, err = i.Map(0, local, MapOptions{Interval: -1}); err != nil {
			t.Fatal(err)
		}
		wordAt(local, 80).Store(99)
		flush(t, m)
		send(t, i, "x", 0, SendOptions{Notify: true, Tag: 6})
		if n := wait(t, e); n.Tag != 6 {
			t.Errorf("got %+v of a mapping without notifications", n)
		}
	}},
	{"4.4 a notification comes with what a mapping begins with", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 3*pageBytes, ExportOptions{})
		e.Block()
		local, err := w.importer.Alloc(uint64(2 * pageBytes))
		if err != nil {
			t.Fatal(err)
		}
		copy(local[pageBytes:], "first")
		_, err = i.Map(uint64(pageBytes), local, MapOptions{Interval: -1, Copy: true, Notify: true, Tag: 7})
		if err != nil {
			t.Fatal(err)
		}
		n := wait(t, e)
		if n.Tag != 7 || n.Offset != uint64(pageBytes) || n.Bytes != uint64(2*pageBytes) {
			t.Errorf("got %+v", n)
		}
		if got := memory[2*pageBytes:][:5]; string(got) != "first" {
			t.Errorf("has %q when notified", got)
		}
	}},
	{"4.4 stores that notify wait while too many notifications wait", func(t *testing.T, w *world) {
		_, e, _, m := w.patient(t)
		var offsets []uint64 // of the notifications
		done := make(chan struct{})
		e.Handle(func(n Notification) {
			if offsets = append(offsets, n.Offset); len(offsets) == manyStores {
				close(done)
			}
		})
		stores := make(chan error, 1)
		go func() {
			for k := range uint64(manyStores) {
				if err := m.Store(8*(k%64), k); err != nil {
					stores <- fmt.Errorf("store %d: %w", k, err)
					return
				}
			}
			stores <- nil
		}()
		w.untilFull(t, stores)
		e.Unblock()
		if err := testwait.Receive(t, "the last store", stores); err != nil {
			t.Fatal(err)
		}
		testwait.Receive(t, "the last notification", done)
		for k, off := range offsets {
			if off != uint64(8*(k%64)) {
				t.Fatalf("notification %d is of offset %d", k, off)
			}
		}
	}},
	{"4.4 the end of an import ends stores that wait to notify", func(t *testing.T, w *world) {
		local, _, i, m := w.patient(t)
		stores := make(chan error, 1)
		go func() {
			for {
				if err := m.Store(0, 1); err != nil {
					stores <- err
					return
				}
			}
		}()
		w.untilFull(t, stores)
		i.Unimport()
		if err := testwait.Receive(t, "the end of the stores", stores); !errors.Is(err, ErrUnimported) {
			t.Errorf("a store that waited: %v", err)
		}
		if _, err := i.Map(0, local, MapOptions{}); !errors.Is(err, ErrUnimported) {
			t.Errorf("Map: %v", err)
		}
		if _, err := w.imports(t, 1).Map(0, local, MapOptions{}); err != nil {
			t.Errorf("Map to another import: %v", err)
		}
	}},
}

// mapping makes an automatic update area of some bytes, whose stores go out by Flush.
func (w *world) mapping(t *testing.T, i *Import, off, size int) (local []byte, m *Mapping) {
	t.Helper()
	local, err := w.importer.Alloc(uint64(size))
	if err == nil {
		m, err = i.Map(uint64(off), local, MapOptions{Interval: -1})
	}
	if err != nil {
		t.Fatal(err)
	}
	return local, m
}

func flush(t *testing.T, m *Mapping) {
	t.Helper()
	if err := m.Flush(testContext(t)); err != nil {
		t.Fatal(err)
	}
}

const (
	manyStores = 2 * sendDepth // more than can be on their way by RDMA, or elsewhere
	fewOps     = 3
)

// patient maps an area whose stores notify an export that keeps two notifications, and takes none of them.
func (w *world) patient(t *testing.T) (local []byte, e *Export, i *Import, m *Mapping) {
	t.Helper()
	o := w.options(t, "sender")
	o.MaxOps = fewOps
	w.importer = openNode(t, o)
	_, e, i = w.pair(t, pageBytes, ExportOptions{Queue: 2})
	e.Block()
	local, err := w.importer.Alloc(uint64(pageBytes))
	if err == nil {
		m, err = i.Map(0, local, MapOptions{Interval: -1, Notify: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	return local, e, i, m
}

// untilFull waits until a store that begins now has to wait.
func (w *world) untilFull(t *testing.T, stores <-chan error) {
	t.Helper()
	testwait.Until(t, "as many notifications that wait as may", func() bool {
		select {
		case err := <-stores:
			t.Fatalf("stores ended: %v", err)
		default:
		}
		s := w.importer.Stats().Imports
		return len(s) == 1 && s[0].Queued >= fewOps // those that had begun may be more
	})
}
