//go:build cgo

package main

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"pinwheel/internal/engine"
	"pinwheel/internal/testwait"
	"pinwheel/vmwatch"
)

// unopened is a server whose domain is yet to be made, with a watch of that mechanism, and what it tells the user.
func unopened(t *testing.T, watch string) (
	s *server, ask func(question uint32) (state uint32, errno syscall.Errno), said *[]string,
) {
	t.Helper()
	testwait.Bound(t)
	runtime.LockOSThread() // the server has a thread of its own
	t.Cleanup(runtime.UnlockOSThread)
	_, s, ask = asked(t)
	said = new([]string)
	s.set.Watch = watch
	s.engine = engine.New(func(m string) { *said = append(*said, m) }, nil)
	s.domains[0].Store(nil)
	for w := spareWatch(); w != nil; w = spareWatch() { // of other tests
		_ = w.Close()
	}
	t.Cleanup(s.stop)
	return s, ask, said
}

// A thread whose domain has no watch yet gets no cache, and need not ask again until there is one.
func TestNobodyWaitsForTheWatch(t *testing.T) {
	s, ask, said := unopened(t, "none")
	if _, errno := ask(askAcquire); errno == 0 || s.sh.domain[0].opening != 1 {
		t.Fatalf("errno %d, opening %d; want an error, and 1", errno, s.sh.domain[0].opening)
	}
	doorbell := at32(&s.sh.doorbell)
	testwait.Until(t, "the server is woken", func() bool { return doorbell.Load() > 0 })
	if s.opened(); s.sh.domain[0].opening != 0 {
		t.Error("the domain may not be asked for")
	}
	if d, err := s.domain(0, false); err != nil || d.watch.Mechanism() != vmwatch.None {
		t.Errorf("no domain: %v", err)
	}
	if s.openerNs <= 0 || s.openingNs <= s.openerNs || len(*said) > 0 {
		t.Errorf("%d ns of processor time to open it, %d ns beside the server; said %q", s.openingNs, s.openerNs, *said)
	}
}

// The first large message finds the watch open if one came near its size before.
func TestMessagesNearTheThresholdOpenTheWatch(t *testing.T) {
	s, _, said := unopened(t, "none")
	if s.prepare(); s.begun || s.opening != nil {
		t.Fatal("something was opened for no message")
	}
	opensAhead(t, s)
	s.prepare()
	if s.opening != nil {
		t.Error("a second watch is being opened")
	}
	if d, err := s.domain(0, false); err != nil || d.watch.Mechanism() != vmwatch.None || len(*said) > 0 {
		t.Errorf("the first large message is not managed: %v, said %q", err, *said)
	}
}

// A watcher that was opened ahead for nothing is kept for a while only; one that a domain has taken is the domain's.
func TestWatchThatNobodyNeedsIsClosed(t *testing.T) {
	unopened(t, "none")
	synctest.Test(t, func(t *testing.T) {
		w, err := vmwatch.Open(vmwatch.Options{Mechanism: "none"})
		if err != nil {
			t.Fatal(err)
		}
		giveWatchFor(w, time.Second)
		time.Sleep(time.Second - 1)
		if spareWatch() != w {
			t.Fatal("it is closed too soon")
		}
		giveWatchFor(w, time.Second)
		time.Sleep(time.Second)
		if synctest.Wait(); spareWatch() != nil {
			t.Error("it is kept")
		}
	})
}

// opensAhead has a message come near the threshold, and the watch be opened for that.
func opensAhead(t *testing.T, s *server) {
	t.Helper()
	at32(&s.sh.near).Store(1)
	if s.prepare(); s.opening == nil {
		t.Fatal("no watch is being opened")
	}
	<-s.opening.done
	s.opened()
}

// With a budget of the node, the process begins at its start, before there is any message.
func TestProcessThatHasBegunOpensTheWatchAheadToo(t *testing.T) {
	s, _, _ := unopened(t, "none")
	s.begin()
	if s.prepare(); s.opening != nil {
		t.Fatal("something was opened for no message")
	}
	opensAhead(t, s)
	if _, err := s.domain(0, false); err != nil {
		t.Error(err)
	}
	if s.prepare(); s.opening != nil {
		t.Error("a second watch is being opened")
	}
}

// The process leaves the node, which the watch is opened with.
func TestEndWaitsForTheWatch(t *testing.T) {
	s, ask, _ := unopened(t, "none")
	var opened atomic.Bool
	openWatch = func(o vmwatch.Options) (*vmwatch.Watcher, error) {
		defer opened.Store(true)
		time.Sleep(20 * time.Millisecond) // an end that does not wait is over by then
		return vmwatch.Open(o)
	}
	t.Cleanup(func() { openWatch = vmwatch.Open })
	_, _ = ask(askAcquire)
	if s.stop(); !opened.Load() {
		t.Error("it is still being opened")
	}
	at32(&s.sh.mode).Store(modeManaged)
	if _, errno := ask(askAcquire); errno == 0 || s.opening != nil {
		t.Error("a watch is being opened after the end")
	}
}

// One line, and plain registration from then on.
func TestPanicWhileTheWatchIsOpenedIsContained(t *testing.T) {
	s, ask, said := unopened(t, "none")
	openWatch = func(vmwatch.Options) (*vmwatch.Watcher, error) { panic("test") }
	t.Cleanup(func() { openWatch = vmwatch.Open })
	_, _ = ask(askAcquire)
	if s.stop(); at32(&s.sh.mode).Load() != modePlain || len(*said) != 1 {
		t.Errorf("mode %d, said %q", at32(&s.sh.mode).Load(), *said)
	}
}

func TestWatchThatCannotBeHadEndsManaging(t *testing.T) {
	s, ask, said := unopened(t, "no such mechanism")
	_, _ = ask(askAcquire)
	<-s.opening.done
	if s.opened(); at32(&s.sh.mode).Load() != modePlain {
		t.Error("managing goes on")
	}
	if len(*said) != 1 || !strings.Contains((*said)[0], "no such mechanism") {
		t.Errorf("the user is told %q", *said)
	}
}
