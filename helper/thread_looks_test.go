package helper

import (
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/queue"
	"pinwheel/schedule"
	"pinwheel/verbs"
)

// ignorant predicts nothing, so that every region is looked at again and again.
type ignorant struct{ used []mem.RegionID }

func (p *ignorant) Observe(u predictor.Use) { p.used = append(p.used[:0], u.Region) }
func (p *ignorant) Changed() []mem.RegionID { return p.used }
func (p *ignorant) Forget(mem.RegionID)     {}
func (p *ignorant) Next(mem.RegionID, int64) (predictor.Prediction, bool) {
	return predictor.Prediction{}, false
}

// manyLooks is a Scheduler that counts how often it had more to look at than one Next does, and how often the helper
// slept before the next Next.
type manyLooks struct {
	*schedule.Scheduler
	clock       *clocktest.Fake
	more        bool
	sleeps      int64 // before that
	cut, delays atomic.Int64
}

func (l *manyLooks) Next(nowNs int64) schedule.Action {
	if l.more && l.clock.Sleeps.Load() > l.sleeps {
		l.delays.Inc()
	}
	a := l.Scheduler.Next(nowNs)
	if l.more = a.Kind == schedule.Wait && a.UntilNs <= nowNs; l.more {
		l.cut.Inc()
		l.sleeps = l.clock.Sleeps.Load()
	}
	return a
}

// On the processor of a rank, the regions that may not cost anything are looked at together. One wake-up does for all.
func TestLooksOfOneMomentAreOneWakeup(t *testing.T) {
	const regions = 64 // four times what one Next looks at
	costs := verbs.Costs{
		Register:   verbs.Cost{PerPageNs: 900, FixedNs: 10_000},
		Deregister: verbs.Cost{PerPageNs: 400, FixedNs: 10_000},
	}
	clock, ring := &clocktest.Fake{}, queue.NewRing[schedule.Event](2*regions)
	l := &manyLooks{clock: clock, Scheduler: schedule.NewScheduler(&ignorant{},
		schedule.SchedulerOptions{Costs: costs, ItemNs: us, KeepUnknown: true, Cost: 1e-9})}
	th := start(t, ThreadOptions{Decider: l, Clock: clock, CPU: AnyCPU, cpuNs: func() int64 { return 0 }})
	th.Place(Placement{CPU: AnyCPU, Helpers: 1, Shared: true})
	for id := range mem.RegionID(regions) {
		ring.Push(use(id+1, clock.NowNs()))
	}
	th.Attach(ring)
	testwait.Until(t, "ten moments of more looks than one Next does", func() bool { return l.cut.Load() >= 30 })
	if n := l.delays.Load(); n > 0 {
		t.Errorf("the helper slept %d times of %d while it had more to look at", n, l.cut.Load())
	}
}
