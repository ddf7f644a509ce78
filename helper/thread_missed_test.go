package helper

import (
	"slices"
	"testing"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/queue"
	"pinwheel/schedule"
)

func TestThreadTellsTheDeciderOfEveryMiss(t *testing.T) {
	k := newKeeper(schedule.Never / 2)
	th := start(t, ThreadOptions{Decider: k, CPU: AnyCPU})
	th.Missed(schedule.Miss{Region: 7, NeedNs: 1})
	th.Missed(schedule.Miss{Region: 8, NeedNs: 2})
	th.Missed(schedule.Miss{Region: 0, NeedNs: 3}) // of a region that is not known
	testwait.Until(t, "the Decider hears of them", func() bool { return slices.Equal(k.misses(), []mem.RegionID{7, 8}) })
}

// What was missed during a park is later than what waits in DQ, and both come before any decision.
func TestMissesOfAParkAreToldOfOnceDQIsEmpty(t *testing.T) {
	clock, r := &clocktest.Fake{}, &resumed{keeper: newKeeper(schedule.Never / 2)}
	ring := queue.NewRing[schedule.Event](8)
	th := start(t, ThreadOptions{Decider: r, Clock: clock, CPU: AnyCPU})
	th.Attach(ring)
	park(t, th)
	for range 3 {
		ring.Push(use(1, clock.NowNs()))
	}
	th.Missed(schedule.Miss{Region: 7, NeedNs: clock.NowNs()})
	th.Missed(schedule.Miss{Region: 8, NeedNs: clock.NowNs()})
	r.on.Store(true)
	th.Place(Placement{CPU: AnyCPU, Helpers: 1})
	testwait.Until(t, "a decision", func() bool { return th.Stats().Deregs > 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	want := []string{"observe", "observe", "observe", "missed", "missed", "next"}
	if got := r.calls[:min(len(r.calls), len(want))]; !slices.Equal(got, want) {
		t.Errorf("after a park: %v, want %v", got, want)
	}
}

// misses returns the regions of Missed.
func (k *keeper) misses() []mem.RegionID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.missed)
}
