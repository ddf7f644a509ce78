package vmmc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
)

// betweenNodes is a test that node 1 runs.
type betweenNodes struct {
	name string
	test func(t *testing.T, w *far)
}

// sentencesBetweenNodes are those of the conformance suite that concern two machines.
var sentencesBetweenNodes = []betweenNodes{
	{"3 communication may take place only after the receiver gives permission", func(t *testing.T, w *far) {
		w.export(t, FarExport{ID: 1, Bytes: 100, Peers: []string{}})
		w.export(t, FarExport{ID: 2, Bytes: 100, Peers: []string{"somebody else"}})
		for id := range uint32(2) {
			if i, err := w.importer.Import(testContext(t), id+1, w.address); !errors.Is(err, ErrNotPermitted) {
				t.Errorf("export %d: %v, %v", id+1, i, err)
			}
		}
	}},
	{"3 the exporter can restrict the number of importers", func(t *testing.T, w *far) {
		w.export(t, FarExport{ID: 1, Bytes: 100, MaxImporters: 2})
		first := w.imports(t, 1)
		w.imports(t, 1)
		if _, err := w.importer.Import(testContext(t), 1, w.address); !errors.Is(err, ErrTooManyImporters) {
			t.Errorf("a third: %v", err)
		}
		first.Unimport()
		w.imports(t, 1)
	}},
	{"3 transferred data do not overwrite addresses outside the buffer", func(t *testing.T, w *far) {
		i := w.pair(t, 1001, ExportOptions{})
		for _, m := range []struct{ off, n uint64 }{
			{1001, 1}, {1000, 2}, {0, 1002}, {^uint64(0), 1}, {^uint64(0), 2}, {1 << 63, 1 << 20},
		} {
			if err := i.Send(testContext(t), make([]byte, m.n), m.off, SendOptions{}); !errors.Is(err, ErrBounds) {
				t.Errorf("%d bytes at %d: %v", m.n, m.off, err)
			}
		}
		all := strings.Repeat("a", 1001)
		if err := arrive(t, i, all); err != nil {
			t.Fatal(err)
		}
		w.has(t, 0, all) // and Close looks at what is beside it
	}},
	{"3 deliberate update transfers from any address of the caller", func(t *testing.T, w *far) {
		const size = 150_001
		i := w.pair(t, size, ExportOptions{})
		want, src := make([]byte, size), make([]byte, size)
		random := rand.New(rand.NewPCG(3, 5))
		for round := range 60 {
			n := 1 + random.IntN(1<<random.IntN(18)) // the small ones as often as the large ones
			n = min(n, size)
			from, to := random.IntN(size-n+1), random.IntN(size-n+1)
			for k := range n {
				src[from+k] = byte(round + k*7)
			}
			copy(want[to:], src[from:][:n])
			op, err := i.SendAsync(src[from:][:n], uint64(to), SendOptions{})
			if err == nil {
				err = op.Wait(testContext(t))
			}
			if err != nil {
				t.Fatal(err)
			}
			if round%10 == 9 {
				w.equal(t, want)
			}
		}
	}},
	{"3 deliberate updates are delivered in order", func(t *testing.T, w *far) {
		i := w.pair(t, 8192, ExportOptions{})
		rounds := uint64(500)
		if testing.Short() {
			rounds = 100
		}
		answer := w.watch(Watching{ID: 1, Words: []int{0, 4096}, Flag: 8, Last: rounds})
		long := make([]byte, 2048) // is registered, not copied
		for k := range rounds {
			for _, off := range []uint64{0, 4096, 8} {
				src := long[:8]
				if off == 4096 {
					src = long
				}
				binary.NativeEndian.PutUint64(src, k+1)
				if err := i.Send(testContext(t), src, off, SendOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := testwait.Receive(t, "the last message", answer); err != nil {
			t.Error(err)
		}
	}},
	{"3 there is no receive, and messages don't disturb the receiver", func(t *testing.T, w *far) {
		i := w.pair(t, inARow*4096, ExportOptions{})
		const messages = 1000
		over, ended, sent := make(chan struct{}), make(chan error, 1), atomic.NewInt64(0)
		go func() { ended <- sendWithoutPause(i, sent, over) }()
		for round := 1; ; round++ {
			var before, after Usage
			w.ask(t, "Usage", true, &before)
			had, first := throughConnection(i), sent.Load()
			testwait.Until(t, "some messages", func() bool { return sent.Load() >= first+messages || i.Err() != nil })
			w.ask(t, "Usage", true, &after)
			n, frames, switches := sent.Load()-first, throughConnection(i)-had, after.Switches-before.Switches
			t.Logf("%d messages, %d through the connection: %d context switches and %v of the receiver",
				n, frames, switches, after.CPU-before.CPU)
			if w.name != "rdma" { // for comparison: one for each message, or two
				break
			}
			if frames > uint64(n)/2 && round < 20 {
				continue // until there is a lease
			}
			// Messages without a lease take some, and the questions, and Go by itself. The others take none.
			if frames > uint64(n)/2 || uint64(switches) > 3*frames+uint64(n)/10 {
				t.Errorf("%d frames and %d context switches of the receiver", frames, switches)
			}
			break
		}
		close(over)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}},
	{"4 proxy addresses stand for the buffer", func(t *testing.T, w *far) {
		i := w.pair(t, 5000, ExportOptions{})
		r, err := i.Proxy()
		if err != nil {
			t.Fatal(err)
		}
		ctx := testContext(t)
		if err := w.importer.SendTo(ctx, []byte("there"), r.Start+4000, SendOptions{Notify: true}); err != nil {
			t.Fatal(err)
		}
		if n := w.notification(t, 1); n.Offset != 4000 || n.Bytes != 5 {
			t.Errorf("%+v", n)
		}
		w.has(t, 4000, "there")
		for _, a := range []mem.Addr{r.Start + 4996, r.End, r.Start - 1} {
			if err := w.importer.SendTo(ctx, []byte("there"), a, SendOptions{}); !errors.Is(err, ErrBounds) {
				t.Errorf("to %#x: %v", uintptr(a), err)
			}
		}
	}},
	{"4.1 an import waits until a matching buffer has been exported", func(t *testing.T, w *far) {
		h, givenUp := w.importer.ImportAsync(7, w.address), w.importer.ImportAsync(8, w.address)
		begun(t, w.importer, 7, w.address)
		begun(t, w.importer, 8, w.address)
		givenUp.Cancel()
		if _, err := givenUp.Result(); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v", err)
		}
		w.export(t, FarExport{ID: 1, Bytes: 10})
		w.imports(t, 1) // came after it, and is granted
		select {
		case <-h.Done():
			t.Fatal("done before the export")
		default:
		}
		w.export(t, FarExport{ID: 7, Bytes: 200})
		if i, err := h.Result(); err != nil || i.Bytes() != 200 {
			t.Errorf("got %v, %v", i, err)
		}
		w.export(t, FarExport{ID: 8, Bytes: 10, MaxImporters: 1})
		w.imports(t, 8) // the one given up does not count
	}},
	{"4.2 a message that was sent may be changed", func(t *testing.T, w *far) {
		i := w.pair(t, 100_000, ExportOptions{})
		src := bytes.Repeat([]byte{'a'}, 100_000)
		for _, n := range []int{100, 100_000} { // copied, and registered
			if err := i.Send(testContext(t), src[:n], 0, SendOptions{Notify: true}); err != nil {
				t.Fatal(err)
			}
			for k := range src[:n] {
				src[k] = 'b'
			}
			w.notification(t, 1)
			w.has(t, 0, strings.Repeat("a", n))
			for k := range src[:n] {
				src[k] = 'a'
			}
		}
	}},
	{"4.2 a non-blocking send has a handle", func(t *testing.T, w *far) {
		i := w.pair(t, 100, ExportOptions{Queue: 1})
		var ops []*Op
		for k := range byte(3) {
			op, err := i.SendAsync([]byte{'a' + k}, uint64(k), SendOptions{Notify: true})
			if err != nil {
				t.Fatal(err)
			}
			ops = append(ops, op)
		}
		for k, op := range ops {
			w.notification(t, 1)
			<-op.Sent()
			if err := op.Wait(testContext(t)); err != nil {
				t.Errorf("message %d: %v", k, err)
			}
		}
		w.has(t, 0, "abc")
	}},
	{"4.4 the handler is called after the message was delivered", func(t *testing.T, w *far) {
		i := w.pair(t, 200_000, ExportOptions{})
		w.tell(t, "Want", Wanting{1, "handle"})
		w.tell(t, "Want", Wanting{1, "unblock"})
		for k := range byte(5) {
			src := bytes.Repeat([]byte{k + 1}, 150_000)
			if err := i.Send(testContext(t), src, uint64(k), SendOptions{Notify: true, Tag: uint16(k) + 9}); err != nil {
				t.Fatal(err)
			}
			want := Handled{
				Notification{Peer: "sender", Tag: uint16(k) + 9, Offset: uint64(k), Bytes: 150_000, Count: 1}, k + 1,
			}
			var got Handled
			if w.ask(t, "Handled", uint32(1), &got); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}},
	{"4.4 notifications can be discarded, separately for each buffer", func(t *testing.T, w *far) {
		first := w.pair(t, 10, ExportOptions{})
		w.export(t, FarExport{ID: 2, Bytes: 10})
		w.tell(t, "Want", Wanting{2, "block"})
		second := w.imports(t, 2)
		w.tell(t, "Want", Wanting{1, "discard"})
		for _, i := range []*Import{first, second} {
			op, err := i.SendAsync([]byte("x"), 0, SendOptions{Notify: true, Tag: 1})
			if err == nil {
				err = op.Wait(testContext(t))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if n := w.notification(t, 2); n.Tag != 1 {
			t.Errorf("%+v", n)
		}
		w.tell(t, "Want", Wanting{1, "accept"})
		send(t, first, "x", 0, SendOptions{Notify: true, Tag: 2})
		if n := w.notification(t, 1); n.Tag != 2 {
			t.Errorf("%+v was not discarded", n)
		}
	}},
	{"4.4 a full queue stops those who notify it, and no other export", func(t *testing.T, w *far) {
		i := w.pair(t, 10, ExportOptions{Queue: 4})
		w.export(t, FarExport{ID: 2, Bytes: 10})
		w.tell(t, "Want", Wanting{2, "block"})
		other := w.imports(t, 2)
		for k := range uint16(4) {
			send(t, i, "x", 0, SendOptions{Notify: true, Tag: k})
		}
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan error)
		go func() { stopped <- i.Send(ctx, []byte("x"), 0, SendOptions{Notify: true}) }()
		send(t, other, "y", 0, SendOptions{Notify: true, Tag: 9})
		if n := w.notification(t, 2); n.Tag != 9 {
			t.Errorf("%+v", n)
		}
		cancel()
		if err := <-stopped; !errors.Is(err, context.Canceled) {
			t.Errorf("the fifth notification for a queue of four: %v", err)
		}
		for k := range uint16(4) {
			if n := w.notification(t, 1); n.Tag != k {
				t.Errorf("%+v, not %d", n, k)
			}
		}
		send(t, i, "x", 0, SendOptions{Notify: true})
	}},
	{"4.5 after Unimport nothing can be sent", func(t *testing.T, w *far) {
		i := w.pair(t, 100, ExportOptions{})
		send(t, i, "kept", 0, SendOptions{})
		i.Unimport()
		if err := i.Send(testContext(t), []byte("lost"), 0, SendOptions{}); !errors.Is(err, ErrUnimported) {
			t.Errorf("Send: %v", err)
		}
		w.tell(t, "Unexport", uint32(1))
		w.has(t, 0, "kept")
	}},
	{"4.5 when Unexport returns, messages have been delivered, and nothing lands any more", func(t *testing.T, w *far) {
		const size = 70_000
		for id := range uint32(5) {
			w.export(t, FarExport{ID: id, Bytes: size})
			i := w.imports(t, id)
			sent, ended := atomic.NewUint64(0), make(chan error)
			go func() {
				b := make([]byte, size)
				for k := uint64(1); ; k++ {
					binary.NativeEndian.PutUint64(b, k)
					if err := i.Send(context.Background(), b, 0, SendOptions{}); err != nil {
						ended <- err
						return
					}
					sent.Store(k)
				}
			}()
			testwait.Until(t, "some messages", func() bool { return sent.Load() > 3 })
			before := sent.Load()
			w.tell(t, "Unexport", id)
			var head, all []byte
			w.ask(t, "Look", Place{id, 0, 8}, &head)
			w.tell(t, "Fill", Filling{id, 'x'})
			if has := binary.NativeEndian.Uint64(head); has < before {
				t.Errorf("message %d had been sent, message %d arrived", before, has)
			}
			if err := testwait.Receive(t, "the end of the messages", ended); !errors.Is(err, ErrUnexported) {
				t.Error(err)
			}
			if w.ask(t, "Look", Place{id, 0, size}, &all); bytes.Count(all, []byte{'x'}) != size {
				t.Error("something landed after Unexport")
			}
		}
	}},
	{"a node that closes leaves ErrPeerGone to its importers", func(t *testing.T, w *far) {
		w.export(t, FarExport{ID: 1, Bytes: 10})
		i := w.imports(t, 1)
		h := w.importer.ImportAsync(99, w.address)
		begun(t, w.importer, 99, w.address)
		go func() { _ = w.there.Call("There.End", true, new(bool)) }()
		testwait.Receive(t, "the end of the import", i.Done())
		if err := i.Send(testContext(t), []byte("x"), 0, SendOptions{}); !errors.Is(err, ErrPeerGone) {
			t.Errorf("Send: %v", err)
		}
		if _, err := h.Result(); !errors.Is(err, ErrPeerGone) {
			t.Errorf("an import that waited: %v", err)
		}
	}},
}

// inARow is how many messages of sendWithoutPause are on their way.
const inARow = 16

// sendWithoutPause sends messages, some of which are on their way at all times: no lease ends between them. Each of
// these has its own place: it does not wait for the others.
func sendWithoutPause(i *Import, sent *atomic.Int64, over chan struct{}) error {
	src, ops := make([]byte, 4096), [inARow]*Op{}
	for k := 0; ; k++ {
		if old := ops[k%len(ops)]; old != nil {
			if err := old.Wait(context.Background()); err != nil {
				return err
			}
			sent.Inc()
		}
		select {
		case <-over:
			return nil
		default:
		}
		var err error
		if ops[k%len(ops)], err = i.SendAsync(src, uint64(k%len(ops)*len(src)), SendOptions{}); err != nil {
			return err
		}
	}
}
