package vmmc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"pinwheel/internal/testwait"
)

// notifySentences are the sentences of notifications.
var notifySentences = []sentence{
	{"4.4 the handler is called after the message was delivered", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 200_000, ExportOptions{})
		type call struct {
			n   Notification
			has byte
		}
		calls := make(chan call)
		e.Handle(func(n Notification) { calls <- call{n, memory[n.Offset+n.Bytes-1]} })
		for k := range byte(5) {
			src := bytes.Repeat([]byte{k + 1}, 150_000)
			if err := i.Send(testContext(t), src, uint64(k), SendOptions{Notify: true, Tag: uint16(k) + 9}); err != nil {
				t.Fatal(err)
			}
			got := testwait.Receive(t, "a call of the handler", calls)
			want := call{Notification{Peer: "sender", Tag: uint16(k) + 9, Offset: uint64(k), Bytes: 150_000, Count: 1}, k + 1}
			if got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}},
	{"4.4 each buffer has a handler of its own", func(t *testing.T, w *world) {
		calls := make(chan string, 9)
		for id := range uint32(2) {
			e := w.export(t, id, w.memory(t, 10), sender, ExportOptions{})
			e.Handle(func(n Notification) { calls <- fmt.Sprint(id, n.Tag) })
		}
		for id := range uint32(2) {
			send(t, w.imports(t, id), "x", 0, SendOptions{Notify: true, Tag: 5})
			if got := testwait.Receive(t, "a call", calls); got != fmt.Sprint(id, 5) {
				t.Errorf("export %d: %q", id, got)
			}
		}
	}},
	{"4.4 without a handler notifications are ignored", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 10, ExportOptions{Queue: 2})
		for range 20 { // ignored ones take no room
			send(t, i, "x", 0, SendOptions{Notify: true, Tag: 1})
		}
		op, err := i.SendAsync([]byte("y"), 0, SendOptions{Notify: true})
		if err == nil {
			err = op.Wait(testContext(t))
		}
		if err != nil || memory[0] != 'y' {
			t.Fatal(err)
		}
		e.Block()
		send(t, i, "z", 0, SendOptions{Notify: true, Tag: 2})
		if n := wait(t, e); n.Tag != 2 {
			t.Errorf("got %+v", n)
		}
	}},
	{"4.4 notifications are queued when blocked", func(t *testing.T, w *world) {
		_, e, i := w.pair(t, 10, ExportOptions{})
		tags := make(chan uint16, 99)
		e.Block()
		e.Handle(func(n Notification) { tags <- n.Tag })
		for k := range uint16(10) {
			send(t, i, "x", 0, SendOptions{Notify: true, Tag: k})
		}
		if len(tags) > 0 {
			t.Fatalf("%d were not blocked", len(tags))
		}
		e.Unblock()
		for k := range uint16(10) {
			if got := testwait.Receive(t, "a notification", tags); got != k {
				t.Errorf("tag %d instead of %d", got, k)
			}
		}
	}},
	{"4.4 notifications can be discarded, separately for each buffer", func(t *testing.T, w *world) {
		calls := make(chan uint32, 99)
		var exports []*Export
		var imports []*Import
		for id := range uint32(2) {
			e := w.export(t, id, w.memory(t, 10), sender, ExportOptions{})
			e.Handle(func(Notification) { calls <- id })
			exports, imports = append(exports, e), append(imports, w.imports(t, id))
		}
		exports[0].Discard(true)
		for _, i := range []int{0, 1} {
			op, err := imports[i].SendAsync([]byte("x"), 0, SendOptions{Notify: true})
			if err == nil {
				err = op.Wait(testContext(t))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := testwait.Receive(t, "a call", calls); got != 1 {
			t.Errorf("export %d", got)
		}
		exports[0].Discard(false)
		send(t, imports[0], "x", 0, SendOptions{Notify: true})
		if got := testwait.Receive(t, "a call", calls); got != 0 || len(calls) > 0 {
			t.Errorf("export %d, and %d more", got, len(calls))
		}
	}},
	{"4.4 a process may be suspended waiting for notifications", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 10, ExportOptions{})
		e.Block()
		got := make(chan Notification)
		go func() {
			defer close(got)
			for range 3 {
				n, err := e.Wait(context.Background())
				if err != nil {
					t.Error(err)
				}
				got <- n
			}
		}()
		for k := range uint16(3) {
			send(t, i, "abc", uint64(k), SendOptions{Notify: true, Tag: k})
			if n := testwait.Receive(t, "a notification", got); n.Tag != k || string(memory[k:k+3]) != "abc" {
				t.Errorf("got %+v", n)
			}
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := e.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("without a notification: %v", err)
		}
	}},
	{"4.4 a process may wait for notifications and other events at once", func(t *testing.T, w *world) {
		_, e, i := w.pair(t, 10, ExportOptions{})
		fd, err := e.FD()
		if err != nil {
			t.Fatal(err)
		}
		events := os.NewFile(uintptr(fd), "events") // waits by epoll(7)
		defer events.Close()
		over, cancel := context.WithCancel(context.Background())
		cancel()
		for k := range uint16(20) {
			send(t, i, "x", 0, SendOptions{Notify: true, Tag: k})
			n, err := Notification{}, error(nil)
			for n, err = e.Wait(over); err != nil; n, err = e.Wait(over) {
				if _, err := events.Read(make([]byte, 8)); err != nil {
					t.Fatal(err)
				}
			}
			if n.Tag != k {
				t.Errorf("got %+v, want tag %d", n, k)
			}
		}
		if err := e.Unexport(testContext(t)); err != nil {
			t.Fatal(err)
		}
		for errors.Is(err, nil) || errors.Is(err, context.Canceled) {
			if _, err = events.Read(make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
			_, err = e.Wait(over)
		}
		if !errors.Is(err, ErrUnexported) {
			t.Error(err)
		}
		if _, err := e.FD(); !errors.Is(err, ErrUnexported) {
			t.Error(err)
		}
	}},
	{"4.4 a full queue stops those who notify it, and no other export", func(t *testing.T, w *world) {
		_, e, i := w.pair(t, 10, ExportOptions{Queue: 4})
		other := w.export(t, 2, w.memory(t, 10), sender, ExportOptions{})
		e.Block()
		other.Block()
		for range 4 {
			send(t, i, "x", 0, SendOptions{Notify: true})
		}
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan error)
		go func() { stopped <- i.Send(ctx, []byte("x"), 0, SendOptions{Notify: true}) }()
		send(t, w.imports(t, 2), "y", 0, SendOptions{Notify: true, Tag: 3})
		if n := wait(t, other); n.Tag != 3 {
			t.Errorf("got %+v", n)
		}
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Errorf("the fifth notification for a queue of four: %v", err)
		}
		for range 4 {
			wait(t, e)
		}
		send(t, i, "x", 0, SendOptions{Notify: true})
	}},
	{"4.4 notifications with the same tag coalesce if the exporter wants that", func(t *testing.T, w *world) {
		_, e, i := w.pair(t, 100, ExportOptions{Queue: 2, Coalesce: true})
		e.Block()
		for k := range uint64(50) {
			op, err := i.SendAsync([]byte("x"), k, SendOptions{Notify: true, Tag: uint16(k % 2)})
			if err == nil {
				err = op.Wait(testContext(t))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for k := range uint16(2) {
			if n := wait(t, e); n.Tag != k || n.Count != 25 || n.Offset != 48+uint64(k) {
				t.Errorf("got %+v", n)
			}
		}
	}},
	{"4.4 a slow handler delays its own notifications, and nothing else", func(t *testing.T, w *world) {
		memory, e, i := w.pair(t, 10, ExportOptions{Queue: 2})
		other := w.export(t, 2, w.memory(t, 10), sender, ExportOptions{})
		goOn, slow, fast := make(chan struct{}), make(chan uint16, 9), make(chan uint16, 9)
		release := sync.OnceFunc(func() { close(goOn) })
		defer release()
		e.Handle(func(n Notification) { <-goOn; slow <- n.Tag })
		other.Handle(func(n Notification) { fast <- n.Tag })
		const notifications = 5 // more than it takes
		for k := range uint16(notifications) {
			if _, err := i.SendAsync([]byte("x"), 0, SendOptions{Notify: true, Tag: k}); err != nil {
				t.Fatal(err)
			}
		}
		send(t, i, "y", 5, SendOptions{})
		arrives(t, memory, 5, "y")
		send(t, w.imports(t, 2), "z", 0, SendOptions{Notify: true, Tag: 9})
		if got := testwait.Receive(t, "a call of the other handler", fast); got != 9 {
			t.Errorf("tag %d", got)
		}
		release()
		for k := range uint16(notifications) {
			if got := testwait.Receive(t, "a call of the slow handler", slow); got != k {
				t.Errorf("tag %d instead of %d", got, k)
			}
		}
	}},
}
