package helper

import (
	"slices"
	"testing"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/queue"
)

func TestThreadTellsTheDeciderOfEveryMiss(t *testing.T) {
	k := newKeeper(never / 2)
	th := start(t, ThreadOptions{Decider: k, CPU: AnyCPU})
	th.Missed(7, 1)
	th.Missed(8, 2)
	th.Missed(0, 3) // of a region that is not known
	testwait.Until(t, "the Decider hears of them", func() bool { return slices.Equal(k.misses(), []mem.RegionID{7, 8}) })
}

// What was missed during a park is later than what waits in DQ, and both come before any decision.
func TestMissesOfAParkAreToldOfOnceDQIsEmpty(t *testing.T) {
	clock, r, ring := &clocktest.Fake{}, &resumed{keeper: newKeeper(never / 2)}, queue.NewRing[Event](8)
	th := start(t, ThreadOptions{Decider: r, Clock: clock, CPU: AnyCPU})
	th.Attach(ring)
	park(t, th)
	for range 3 {
		ring.Push(use(1, clock.NowNs()))
	}
	th.Missed(7, clock.NowNs())
	th.Missed(8, clock.NowNs())
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

func TestOnlyTheLatestMissesAreKept(t *testing.T) {
	var m Misses
	k := newKeeper(never / 2)
	for id := range mem.RegionID(2*mostMisses + 3) {
		m.Add(id+1, 0)
	}
	m.Tell(k, 0)
	m.Tell(k, 0)
	got := k.misses()
	if len(got) != mostMisses || got[0] != mostMisses+4 || !slices.IsSorted(got) {
		t.Errorf("told of %v", got)
	}
}

// After the event of the use that missed, the miss could be taken for one of the next use.
func TestMissIsIgnoredAfterTheEventOfItsUse(t *testing.T) {
	const missed, with = 1, 2
	s := NewScheduler(fixed{missed: 1000 * ms, with: 1000*ms + us}, SchedulerOptions{KeepUnknown: true, Costs: testCosts, ItemNs: us})
	for id := mem.RegionID(missed); id <= with; id++ {
		e := use(id, ms)
		e.EndNs = 2 * ms
		s.Observe(*e, 2*ms)
		s.Done(Action{Kind: Deregister, Region: id}, 3*ms, 4*ms, nil)
	}
	s.Missed(missed, ms, 5*ms)
	if a := s.Next(5 * ms); a.Kind != Wait {
		t.Errorf("%+v after a miss of a use that has ended", a)
	}
	s.Missed(missed, 5*ms, 5*ms)
	if a := s.Next(5 * ms); a.Kind != Register || a.Region != with {
		t.Errorf("%+v after a miss of the next use", a)
	}
}

// misses returns the regions of Missed.
func (k *keeper) misses() []mem.RegionID {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.missed)
}
