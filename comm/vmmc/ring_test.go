package vmmc

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/comm/vmmc/internal/protocol"
	"pinwheel/comm/vmmc/internal/wire"
	"pinwheel/internal/testwait"
)

// A writer that always has a credit and a reader that sleeps when there is nothing: each entry comes once, in
// order, and no wake-up is lost.
func TestRingLosesNothing(t *testing.T) {
	testwait.Bound(t)
	const credits, rounds = 5, 20_000
	r, fd, err := newRing(credits)
	if err != nil {
		t.Fatal(err)
	}
	other, err := mapRing(fd, credits) // as another process maps it
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	defer r.unmap()
	defer other.unmap()
	bell, free := make(chan bool, 1), make(chan bool, credits)
	go func() {
		for k := range uint64(rounds) {
			free <- true
			if other.put(entry{offset: k, bytes: 2 * k, tag: k % 7}) {
				bell <- true
			}
		}
	}()
	for head := uint64(0); head < rounds; {
		e, ok, err := r.take(head)
		switch {
		case err != nil:
			t.Fatal(err)
		case ok && e != entry{offset: head, bytes: 2 * head, tag: head % 7}:
			t.Fatalf("entry %d is %+v", head, e)
		case ok:
			head++
			<-free
		case r.sleep(head):
			testwait.Receive(t, "the bell", bell)
		default: // the writer may have seen the wish for the bell
			select {
			case <-bell:
			default:
			}
		}
	}
}

func TestExporterThatIsAwakeNeedsNoBell(t *testing.T) {
	r, fd, err := newRing(4)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	defer r.unmap()
	var rung []bool
	put := func() { rung = append(rung, r.put(entry{})) }
	put()
	if r.sleep(0) {
		t.Error("it slept over an entry")
	}
	r.asleep.Store(0)
	put()
	if !r.sleep(2) {
		t.Error("it does not sleep when there is nothing")
	}
	put() // rings
	put()
	for k, want := range []bool{false, false, true, false} {
		if rung[k] != want {
			t.Errorf("entry %d rang: %v", k, rung[k])
		}
	}
}

func TestImporterThatSpoilsItsRingLosesItsConnection(t *testing.T) {
	for what, spoil := range map[string]func(r *ring){
		"a tail far ahead":         func(r *ring) { r.tail.Store(1 << 40) },
		"a tail that goes back":    func(r *ring) { r.tail.Store(^uint64(0)) },
		"an offset beyond the end": func(r *ring) { r.put(entry{offset: 101}) },
		"a message beyond the end": func(r *ring) { r.put(entry{offset: 1, bytes: 100}) },
		"more than its credits": func(r *ring) {
			for range len(r.entries) {
				r.put(entry{})
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			warned := make(chan string, 9)
			w := transports[0].begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
			_, e, i := w.pair(t, 100, ExportOptions{Queue: 4})
			e.Block()
			send(t, i, "x", 0, SendOptions{Notify: true}) // one credit fewer
			i.link.mu.Lock()
			r, bell := i.ring, i.bell
			spoil(r)
			_, err := unix.Write(bell, one)
			i.link.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			testwait.Receive(t, "the end of the import", i.Done())
			if err := i.Err(); !errors.Is(err, ErrPeerGone) {
				t.Error(err)
			}
			if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, `"sender"`) {
				t.Errorf("warned %q", m)
			}
			e.Unblock()
			w.imports(t, 1)
		})
	}
}

// Credits for notifications through shared memory make a frame only if the importer waits for them.
func TestCreditsGoThroughTheRing(t *testing.T) {
	r, fd, err := newRing(4)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		t.Fatal(err)
	}
	defer r.unmap()
	c, peer := net.Pipe()
	defer c.Close()
	defer peer.Close()
	in := &inbound{stream: newStream(c, &Options{Heartbeat: time.Hour}), rings: map[uint64]*ringReader{7: {ring: r}}}
	d := (*exporterDriver)(&Node{inbound: map[protocol.Link]*inbound{1: in}})
	hello := len(in.control)
	d.Send(1, &wire.Frame{Type: wire.Credit, Number: 7, Count: 3})
	if given := r.given.Load(); given != 3 || len(in.control) != hello {
		t.Errorf("%d credits lie in the ring, and %d frames are queued", given, len(in.control)-hello)
	}
	if r.wish(2) || !r.wish(3) {
		t.Error("a wish does not see what came before it")
	}
	for range 2 { // one wish, one frame
		d.Send(1, &wire.Frame{Type: wire.Credit, Number: 7, Count: 1})
	}
	if given := r.given.Load(); given != 5 || len(in.control) != hello+1 {
		t.Errorf("%d credits lie in the ring, and %d frames are queued", given, len(in.control)-hello)
	}
	d.Send(1, &wire.Frame{Type: wire.Credit, Number: 8, Count: 1})
	if len(in.control) != hello+2 {
		t.Error("without a ring a credit is no frame")
	}
}

func TestExporterThatSpoilsItsRingLosesTheConnection(t *testing.T) {
	w := transports[0].begin(t)
	_, e, i := w.pair(t, 100, ExportOptions{Queue: 2})
	e.Block()
	for range 2 {
		send(t, i, "x", 0, SendOptions{Notify: true})
	}
	i.link.mu.Lock()
	i.ring.given.Store(1 << 40)
	i.link.mu.Unlock()
	if _, err := i.SendAsync([]byte("x"), 0, SendOptions{Notify: true}); err != nil {
		t.Fatal(err)
	}
	testwait.Receive(t, "the end of the import", i.Done())
	if err := i.Err(); !errors.Is(err, ErrPeerGone) || !errors.Is(err, protocol.ErrProtocol) {
		t.Error(err)
	}
}

func TestExportThatCantBeSharedSaysSo(t *testing.T) {
	warned := make(chan string, 9)
	w := transports[0].begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
	memory, _, i := w.pair(t, 100, ExportOptions{Queue: 1<<24 + 1}) // more than a ring may have
	if i.Shared() {
		t.Error("it is shared")
	}
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "export 1") {
		t.Errorf("warned %q", m)
	}
	send(t, i, "x", 0, SendOptions{})
	arrives(t, memory, 0, "x")
}

// The importer has the same open bell, and can make it block for both.
func TestBellThatBlocksHoldsNobodyUp(t *testing.T) {
	w := transports[0].begin(t)
	_, e, i := w.pair(t, 100, ExportOptions{Queue: 1})
	e.Block()
	if err := unix.SetNonblock(i.bell, false); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		send(t, i, "x", 0, SendOptions{Notify: true})
		wait(t, e)
	}
	i.Unimport()
	if err := e.Unexport(testContext(t)); err != nil {
		t.Error(err)
	}
}

func TestBellOfAnImportIsAnEventfd(t *testing.T) {
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer closeAll(p[:])
	if err := checkBell(p[1]); err == nil {
		if _, err := os.Stat("/proc/self/fd"); err != nil {
			t.Skipf("nothing tells without /proc: %v", err)
		}
		t.Error("a pipe was accepted")
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(bell)
	if err := checkBell(bell); err != nil {
		t.Error(err)
	}
}

// What an importer sent before it closed is handled, also if its connection has ended meanwhile.
func TestNotificationsBeforeTheEndAreHandled(t *testing.T) {
	w := transports[0].begin(t)
	_, e, i := w.pair(t, 100, ExportOptions{Queue: 9})
	e.Block()
	for range 9 {
		send(t, i, "x", 0, SendOptions{Notify: true})
	}
	if err := w.importer.Close(); err != nil {
		t.Fatal(err)
	}
	for range 9 {
		wait(t, e)
	}
}
