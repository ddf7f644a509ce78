package helper

import (
	"slices"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/queue"
	"pinwheel/schedule"
)

// The thread leaves deregistrations for a wait of a rank that shares its processor, and only then.
func TestThreadWorksInTheWaitsOfItsProcessor(t *testing.T) {
	const costNs, periodNs = 10_000_000, 1_000_000_000
	for _, shares := range []bool{false, true} {
		var waiting atomic.Bool
		clock, k := &clocktest.Fake{}, &costly{newKeeper(schedule.Never / 2), costNs}
		ring := queue.NewRing[schedule.Event](8)
		th := start(t, ThreadOptions{Decider: k, Clock: clock, CPU: AnyCPU, RankWaits: waiting.Load, CommCPU: func() int {
			if shares {
				return CurrentCPU()
			}
			return AnyCPU
		}})
		th.Attach(ring)
		ring.Push(use(1, clock.NowNs())) // nothing is known of the silence yet: it is not put off
		testwait.Until(t, "the first is deregistered", func() bool { return th.Stats().Deregs == 1 })
		clock.Time.Add(periodNs)
		ring.Push(use(1, clock.NowNs()))
		testwait.Until(t, "the second is deregistered", func() bool { return th.Stats().Deregs == 2 })
		s := th.Stats()
		if (s.PutOff > 0) != shares || s.InWaits != 0 {
			t.Errorf("on the rank's processor %t: put off %d times, %d actions in a wait", shares, s.PutOff, s.InWaits)
		}
		waiting.Store(true)
		ring.Push(use(1, clock.NowNs()))
		testwait.Until(t, "the third is deregistered", func() bool { return th.Stats().Deregs == 3 })
		if again := th.Stats(); again.PutOff != s.PutOff || again.InWaits != 1 {
			t.Errorf("on the rank's processor %t, the rank waits: put off %d times, %d actions in a wait", shares, again.PutOff, again.InWaits)
		}
		th.Close()
	}
}

// costly is a keeper that says what its deregistrations cost.
type costly struct {
	*keeper
	costNs int64
}

func (c *costly) Next(nowNs int64) schedule.Action {
	a := c.keeper.Next(nowNs)
	a.CostNs, a.Pages = c.costNs, 1
	return a
}

// A registration that is due soon begins in a wait, and the plan is what its start is measured by.
func TestThreadRegistersEarlyInAWait(t *testing.T) {
	const periodNs = 1_000_000_000
	for _, waits := range []bool{false, true} {
		clock, k := &clocktest.Fake{LateNs: 20_000}, newKeeper(periodNs)
		uses := stamped{clock, make(chan mem.RegionID, 1)}
		th := start(t, ThreadOptions{Decider: k, Registrar: slow{clock}, Clock: clock, CPU: AnyCPU, CommCPU: CurrentCPU,
			RankWaits: func() bool { return waits }})
		th.Attach(uses)
		const rounds = 3
		for n := range int64(rounds) {
			uses.ids <- 1
			testwait.Until(t, "it is registered again", func() bool { return th.Stats().Registers == n+1 })
			clock.Time.Add(periodNs)
		}
		k.mu.Lock()
		early := -slices.Min(k.lateNs)
		k.mu.Unlock()
		s := th.Stats()
		if waits != (early > 2*ms) {
			t.Errorf("in a wait %t: registered %d us early", waits, early/1000)
		}
		if in, out := s.StartsInWaits.Count(), s.Starts.Count(); waits != (in == rounds) || waits == (out == rounds) {
			t.Errorf("in a wait %t: %d starts in waits, %d outside", waits, in, out)
		}
		th.Close()
	}
}

// slow is a Registrar that takes a millisecond of its clock for every action.
type slow struct{ clock *clocktest.Fake }

func (s slow) Prepare([]mem.RegionID)        {}
func (s slow) Register(mem.RegionID) error   { s.clock.Time.Add(1_000_000); return nil }
func (s slow) Deregister(mem.RegionID) error { s.clock.Time.Add(1_000_000); return nil }
