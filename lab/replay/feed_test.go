package replay

import (
	"context"
	"errors"
	"testing"

	"pinwheel/internal/testwait"
)

func TestSimulationWaitsForTheReplay(t *testing.T) {
	testwait.Bound(t)
	done := make(chan struct{})
	s := &feed{out: make(chan []Event, 1), ready: make(chan struct{}), done: done}
	const events = 5*eventChunk + 7
	ended := make(chan error, 1)
	go func() {
		for i := range int64(events) {
			if err := s.put(Event{AtNs: i}); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	<-s.ready // it is one chunk ahead and waits
	next := int64(0)
	for range 3 {
		for _, m := range <-s.out {
			if m.AtNs != next {
				t.Fatalf("event %d, want %d", m.AtNs, next)
			}
			next++
		}
	}
	close(done) // the replay gives up
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the simulation ended with %v, want context.Canceled", err)
	}
}
