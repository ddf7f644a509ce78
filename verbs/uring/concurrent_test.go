package uring_test

import (
	"errors"
	"testing"
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/uring"
	"pinwheel/verbs/verbstest"
)

// patience is how long a test waits for what must come, before it fails
// instead of hanging.
const patience = 30 * time.Second

// One registration is held up in the middle of pinning, by a page that does
// not come. All others must go on, and so must what they registered.
func TestRegistrationDoesNotWaitForAnother(t *testing.T) {
	p := open(t, uring.Options{Rings: 2})
	_, r := verbstest.Map(t, 8*mem.PageSize)
	stuck, other := verbstest.Part(r, 0, 4*mem.PageSize), verbstest.Part(r, 4*mem.PageSize, 4*mem.PageSize)
	faults := holdUpFaults(t, stuck)

	result := make(chan verbs.Region)
	go func() {
		g, err := p.Register(stuck, write)
		if err != nil {
			t.Errorf("Register, held up: %v", err)
		}
		result <- g
	}()
	faults.await(t)

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
	if err := p.Deregister(<-result); err != nil {
		t.Error(err)
	}
	<-done
}

// With every ring busy a registration waits, and Close waits for both.
func TestBusyRingIsWaitedFor(t *testing.T) {
	p := open(t, uring.Options{Rings: 1})
	_, r := verbstest.Map(t, 2*mem.PageSize)
	stuck, other := verbstest.Part(r, 0, mem.PageSize), verbstest.Part(r, mem.PageSize, mem.PageSize)
	faults := holdUpFaults(t, stuck)
	registered, closed := make(chan error, 2), make(chan error, 1)
	start := func(r mem.Range) {
		go func() {
			_, err := p.Register(r, write)
			registered <- err
		}()
	}
	start(stuck)
	faults.await(t)
	start(other)
	time.Sleep(10 * time.Millisecond) // enough for the other to come to the ring; if not, it meets a closed provider
	go func() { closed <- p.Close() }()
	time.Sleep(10 * time.Millisecond)
	select {
	case err := <-closed:
		t.Errorf("Close returned %v before the registration that was under way", err)
	case err := <-registered:
		t.Errorf("a registration returned %v while the only ring was busy", err)
	default:
	}
	faults.letGo(t)
	for range 2 {
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
