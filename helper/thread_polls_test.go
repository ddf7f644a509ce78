package helper

import (
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
)

// longest is a clock that knows the longest sleep.
type longest struct {
	clocktest.Fake
	ns atomic.Int64
}

func (l *longest) SleepNs(ns int64, wake <-chan struct{}) {
	if ns > l.ns.Load() { // only the helper sleeps
		l.ns.Store(ns)
	}
	l.Fake.SleepNs(ns, wake)
}

// A helper that polls looks at DQ every 20 us, whatever it expects. Others leave a program that does nothing alone
// for longer.
func TestPollingBoundsEverySleep(t *testing.T) {
	for _, polls := range []bool{true, false} {
		c := &longest{}
		start(t, ThreadOptions{Decider: newKeeper(ms), Clock: c, CPU: AnyCPU, Polls: polls})
		testwait.Until(t, "100 sleeps", func() bool { return c.Sleeps.Load() >= 100 })
		if ns := c.ns.Load(); (ns <= pollNs) != polls {
			t.Errorf("polls %v: the longest sleep was %d ns", polls, ns)
		}
	}
}
