package helper

import (
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/queue"
	"pinwheel/schedule"
)

// A Thread on the processor of its rank counts all processor time, whatever it is for: its wake-ups, too. The Decider
// has it rest. A second's share may be spent before it was earned.
func TestThreadKeepsWithinTheCost(t *testing.T) {
	const eachS = 200
	clock, cpu := &clocktest.Fake{}, atomic.NewInt64(0)
	k, ring := newKeeper(20*ms), queue.NewRing[schedule.Event](64)
	th := start(t, ThreadOptions{Decider: k, Clock: clock, CPU: AnyCPU,
		cpuNs: func() int64 { return cpu.Add(ms) }, // since the last time
	})
	th.Attach(ring)
	th.Place(Placement{CPU: AnyCPU, Helpers: 1, Shared: true})
	testwait.Until(t, "there is a limit", func() bool { return k.shareNs.Load() > 0 })
	beganNs, before := clock.NowNs(), cpu.Load()
	testwait.Until(t, "200 s have passed", func() bool {
		ring.Push(use(1, clock.NowNs()))
		return clock.NowNs() > beganNs+eachS*second
	})
	passedNs, usedNs := clock.NowNs()-beganNs, cpu.Load()-before
	if mostNs := int64(schedule.DefaultCost*float64(passedNs+second)) + 10*ms; usedNs > mostNs {
		t.Errorf("%d ms of processor time in %d ms", usedNs/ms, passedNs/ms)
	}
	if th.Stats().Registers == 0 {
		t.Errorf("it did nothing in %d ms: %+v", passedNs/ms, th.Stats())
	}
	if s := th.Stats(); s.SharedCPUNs < usedNs/2 || s.SharedNs < passedNs/2 {
		t.Errorf("%d ms of %d ms are counted", s.SharedCPUNs/ms, s.SharedNs/ms)
	}
	// On a core of its own again, it follows every use.
	th.Place(Placement{CPU: AnyCPU, Helpers: 1})
	testwait.Until(t, "there is no limit", func() bool { return k.shareNs.Load() == 0 })
	before, beganNs = th.Stats().Events, clock.NowNs()
	testwait.Until(t, "events are taken in", func() bool {
		ring.Push(use(1, clock.NowNs()))
		return th.Stats().Events > before+100
	})
}

// While the helper rests, nothing but Place and Close wakes it.
func TestRestingThreadIsNotWokenByMisses(t *testing.T) {
	th := &Thread{wake: make(chan struct{}, 1)}
	th.resting.Store(true)
	if th.Missed(schedule.Miss{Region: 1}); len(th.wake) != 0 || !th.misses.some.Load() {
		t.Error("a miss wakes it, or is not kept for later")
	}
	if th.Place(Placement{}); len(th.wake) != 1 {
		t.Error("Place does not wake it")
	}
}
