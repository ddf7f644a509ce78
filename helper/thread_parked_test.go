package helper

import (
	"slices"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/queue"
	"pinwheel/schedule"
)

// resumed is a keeper that notes what it is asked after a park.
type resumed struct {
	*keeper
	on    atomic.Bool
	calls []string
	nowNs []int64
}

func (r *resumed) note(call string, nowNs int64) {
	if r.on.Load() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.calls, r.nowNs = append(r.calls, call), append(r.nowNs, nowNs)
	}
}

func (r *resumed) Observe(e schedule.Event, nowNs int64) {
	r.note("observe", nowNs)
	r.keeper.Observe(e, nowNs)
}

func (r *resumed) Missed(m schedule.Miss, nowNs int64) {
	r.note("missed", nowNs)
	r.keeper.Missed(m, nowNs)
}

func (r *resumed) Next(nowNs int64) schedule.Action {
	r.note("next", nowNs)
	return r.keeper.Next(nowNs)
}

// What piled up in DQ while the helper was parked is history: a decision after
// each of its events would be one about a program of seconds ago.
func TestThreadLooksAtAllThatPiledUpBeforeItDecidesAfterAPark(t *testing.T) {
	const parkedNs = 10_000_000_000
	clock, r := &clocktest.Fake{}, &resumed{keeper: newKeeper(schedule.Never / 2)}
	ring := queue.NewRing[schedule.Event](8)
	th := start(t, ThreadOptions{Decider: r, Clock: clock, CPU: AnyCPU})
	th.Attach(ring)
	park(t, th)
	for range 100 {
		ring.Push(use(1, clock.NowNs()))
	}
	held := int(100 - ring.Lost())
	r.on.Store(true)
	backNs := clock.Time.Add(parkedNs)
	th.Place(Placement{CPU: AnyCPU, Helpers: 1})
	testwait.Until(t, "all events are taken", func() bool { return th.Stats().Events == int64(held) })
	testwait.Until(t, "a decision", func() bool { return th.Stats().Deregs > 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	if first := slices.Index(r.calls, "next"); first != held {
		t.Errorf("first decision after %d of %d events", first, held)
	}
	if at := slices.Min(r.nowNs); at < backNs {
		t.Errorf("the Decider was told a time from %d us before the helper was back", (backNs-at)/1000)
	}
}

func TestThreadIsNotLateForDeadlinesOfAPark(t *testing.T) {
	const parkedNs = 10_000_000_000_000 // far beyond the deadline, which is far off when the park begins
	clock, k := &clocktest.Fake{}, newKeeper(parkedNs/10)
	ring := queue.NewRing[schedule.Event](8)
	th := start(t, ThreadOptions{Decider: k, Clock: clock, CPU: AnyCPU})
	park(t, th)
	ring.Push(use(1, clock.NowNs()))
	th.Attach(ring)
	th.Place(Placement{CPU: AnyCPU, Helpers: 1})
	testwait.Until(t, "the helper waits for a deadline", func() bool { return th.Stats().Deregs == 1 })
	park(t, th)
	clock.Time.Add(parkedNs)
	th.Place(Placement{CPU: AnyCPU, Helpers: 1})
	testwait.Until(t, "the region is registered", func() bool { return th.Stats().Registers == 1 })
	s := th.Stats()
	if ns := s.Starts.MaxNs(); ns > parkedNs/2 {
		t.Errorf("late by %d ms, most of it a park", ns/1e6)
	}
}
