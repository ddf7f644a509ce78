package vmmc

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/testwait"
)

// silent has both nodes bear little silence.
func silent(o *Options) { o.Heartbeat = 2 * time.Second }

// Devices that don't reach each other are found out before any message waits for them.
func TestDevicesThatDoNotReachEachOtherAreNotUsed(t *testing.T) {
	tr := overFake(t)
	w := tr.begin(t, silent)
	o := tr.options(t, "sender")
	silent(&o)
	warned := make(chan string, 99)
	o.Warn = func(m string) { warned <- m }
	w.importer = openNode(t, o)
	fakeOf(w.importer).change(func() { fakeOf(w.importer).cut = true })
	memory := w.memory(t, 1<<20)
	w.export(t, 1, memory, sender, ExportOptions{})
	i, err := w.importer.Import(testContext(t), 1, w.address)
	if err != nil {
		t.Fatal(err)
	}
	for len(warned) == 0 {
		send(t, i, "hello", 10, SendOptions{})
		arrives(t, memory, 10, "hello")
		clear(memory[10:15])
	}
	if m := <-warned; !strings.Contains(m, "was not reached") || i.RDMA() {
		t.Errorf("warned %q, RDMA %v", m, i.RDMA())
	}
}

// A message that is not answered goes through the connection after a while, whatever the device does then.
func TestMessageThatIsNotAnsweredGoesThroughTheConnection(t *testing.T) {
	for how, end := range map[string]func(d *fakeDevice){
		"no answer":     func(d *fakeDevice) { d.change(func() { d.cut = true }) },
		"device failed": func(d *fakeDevice) { d.fail(errors.New("the device has failed")) },
	} {
		t.Run(how, func(t *testing.T) {
			tr := overFake(t)
			w := tr.begin(t, silent)
			o := tr.options(t, "sender")
			silent(&o)
			o.Warn = quiet
			w.importer = openNode(t, o)
			memory, _, i := w.pair(t, 1<<20, ExportOptions{})
			send(t, i, "word", 0, SendOptions{})
			arrives(t, memory, 0, "word")
			keepLease(t, i)
			end(fakeOf(w.importer))
			src := outside(t, 1<<20)
			if err := i.Send(testContext(t), src, 0, SendOptions{}); err != nil {
				t.Fatal(err)
			}
			testwait.Until(t, "the message", func() bool { return bytes.Equal(memory, src) })
			if err := i.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The end of the exporter's device is not the fault of its importers.
func TestFailureOfTheExportersDeviceEndsNoConnection(t *testing.T) {
	warned := make(chan string, 99)
	w := overFake(t).begin(t, func(o *Options) { o.Warn = func(m string) { warned <- m } })
	w.importer.opt.Warn = quiet
	memory, _, i := w.pair(t, 1<<20, ExportOptions{})
	fakeOf(w.exporter).fail(errors.New("the device has failed"))
	if m := testwait.Receive(t, "a warning", warned); !strings.Contains(m, "the device has failed") {
		t.Errorf("warned %q", m)
	}
	if err := arrive(t, i, "after all"); err != nil || !bytes.HasPrefix(memory, []byte("after all")) {
		t.Error(err)
	}
	if got := w.exporter.Stats().Total.Violations; i.Err() != nil || got != 0 {
		t.Errorf("%v, %d violations", i.Err(), got)
	}
}

func TestWriteOutOfBoundsIsAViolation(t *testing.T) {
	w := overFake(t).begin(t, func(o *Options) { o.Warn = quiet })
	_, _, i := w.pair(t, 100, ExportOptions{})
	keepLease(t, i)
	i.link.mu.Lock()
	i.remote.addr++
	i.link.mu.Unlock()
	if err := arrive(t, i, strings.Repeat("!", 100)); !errors.Is(err, ErrPeerGone) {
		t.Errorf("Send: %v", err)
	}
	testwait.Until(t, "it is counted", func() bool { return w.exporter.Stats().Total.Violations == 1 })
}

// What ended a queue pair counts, not what that has flushed: whoever polls first.
func TestReasonOfAFailureIsTheFirst(t *testing.T) {
	real, flushed := errors.New("real"), errors.New("flushed")
	for _, order := range [][]completion{
		{{err: real, access: true}, {id: 1, err: flushed, flushed: true}},
		{{id: 1, err: flushed, flushed: true}, {err: real, access: true}, {id: 2, err: flushed, flushed: true}},
	} {
		qp, err := newFakeDevice().Sender(netip.Addr{})
		if err != nil {
			t.Fatal(err)
		}
		s := &rdmaSender{qp: qp, wake: make(chan struct{}, 1), failing: make(chan struct{})}
		for _, c := range order {
			s.completed(c)
		}
		if s.err != real || !s.refused {
			t.Errorf("%v, refused %v", s.err, s.refused)
		}
		if err := qp.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A short message that nobody has looked for does not keep the end from being noticed.
func TestEndComesAfterWhatNobodyLookedFor(t *testing.T) {
	w := overFake(t).begin(t)
	_, _, i := w.pair(t, 100, ExportOptions{})
	keepLease(t, i)
	i.link.mu.Lock()
	i.link.rdma.later = true // no timer has anybody look
	i.link.mu.Unlock()
	send(t, i, "word", 0, SendOptions{})
	if err := w.importer.Close(); err != nil {
		t.Error(err)
	}
}
