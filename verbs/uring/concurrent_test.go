package uring_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

// patience is how long a test waits for what must come, before it fails
// instead of hanging.
const patience = testwait.Limit

// One registration is held up in the middle of pinning, by a page that does
// not come. All others must go on, and so must what they registered.
func TestRegistrationDoesNotWaitForAnother(t *testing.T) {
	testwait.Bound(t)
	p := open(t, uring.Options{Rings: 2})
	_, r := verbstest.Map(t, 8*mem.PageSize)
	stuck, other := verbstest.Part(r, 0, 4*mem.PageSize), verbstest.Part(r, 4*mem.PageSize, 4*mem.PageSize)
	faults := holdUpFaults(t, stuck)

	heldUp := startHeldUp(t, p, faults, stuck)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			g, err := p.Register(other, write)
			if err != nil {
				t.Errorf("Register: %v", err)
				return
			}
			if err := p.Deregister(g); err != nil {
				t.Errorf("Deregister: %v", err)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("registrations wait for one that is held up")
	}
	faults.letGo(t)
	if err := <-heldUp; err != nil {
		t.Errorf("Register, held up: %v", err)
	}
	<-done
}

// startHeldUp registers r in the background and returns when that is held up.
// What it returns is sent to the channel.
func startHeldUp(t *testing.T, p verbs.Provider, f *faults, r mem.Range) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		_, err := p.Register(r, write)
		result <- err
	}()
	for !f.awaited(t) {
		select {
		case err := <-result:
			if errors.Is(err, syscall.EFAULT) { // seen with Linux 6.1
				t.Skip("this kernel does not wait for userfaultfd while it pins")
			}
			t.Fatalf("Register returned %v instead of being held up", err)
		default:
		}
	}
	return result
}

// With every ring busy a registration waits, and Close waits for both.
func TestBusyRingIsWaitedFor(t *testing.T) {
	testwait.Bound(t)
	p := open(t, uring.Options{Rings: 1})
	_, r := verbstest.Map(t, 2*mem.PageSize)
	stuck, other := verbstest.Part(r, 0, mem.PageSize), verbstest.Part(r, mem.PageSize, mem.PageSize)
	faults := holdUpFaults(t, stuck)
	heldUp := startHeldUp(t, p, faults, stuck)
	waiting, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := p.Register(other, write)
		waiting <- err
	}()
	time.Sleep(10 * time.Millisecond) // enough for the other to come to the ring; if not, it meets a closed provider
	go func() { closed <- p.Close() }()
	time.Sleep(10 * time.Millisecond)
	select {
	case err := <-closed:
		t.Errorf("Close returned %v before the registration that was under way", err)
	case err := <-waiting:
		if !errors.Is(err, verbs.ErrClosed) { // it came late
			t.Errorf("a registration returned %v while the only ring was busy", err)
		}
		waiting <- err
	default:
	}
	faults.letGo(t)
	for _, registered := range []<-chan error{heldUp, waiting} {
		select {
		case err := <-registered:
			if err != nil && !errors.Is(err, verbs.ErrClosed) {
				t.Errorf("Register: %v", err)
			}
		case <-time.After(patience):
			t.Fatal("a registration hangs")
		}
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}
