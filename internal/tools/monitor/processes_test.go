package monitor

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/atomic"

	"pinwheel/comm/vmmc/broker"
)

func TestLooksDoNotWaitForABrokerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		p := &processes[broker.Process]{list: func(ctx context.Context) ([]broker.Process, error) {
			if hangs.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return make([]broker.Process, 2), nil
		}}
		look := func(most time.Duration, want int) {
			t.Helper()
			began := time.Now()
			if got := len(p.look()); got != want {
				t.Errorf("%d processes, want %d", got, want)
			}
			if took := time.Since(began); took > most {
				t.Errorf("a look took %v", took)
			}
		}
		look(0, 2)
		hangs.Store(true)
		look(lookPatience, 2)
		look(lookPatience, 2)
		time.Sleep(answerTimeout)
		look(lookPatience, 0) // by now it is not there
		hangs.Store(false)
		time.Sleep(answerTimeout)
		look(0, 2)
	})
}

// The first look has nothing else to show.
func TestFirstLookWaitsForTheBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &processes[broker.Process]{list: func(context.Context) ([]broker.Process, error) {
			time.Sleep(answerTimeout / 2)
			return make([]broker.Process, 1), nil
		}}
		if got := len(p.look()); got != 1 {
			t.Errorf("%d processes, want 1", got)
		}
	})
}
