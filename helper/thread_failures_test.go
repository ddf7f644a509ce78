package helper

import (
	"errors"
	"fmt"
	"testing"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/queue"
	"pinwheel/schedule"
)

// A burst of regions that can't be released must not make a registration late.
func TestThreadRegistersInTimeThoughDeregistrationsFail(t *testing.T) {
	for _, err := range []error{fmt.Errorf("cache: %w", schedule.ErrInUse), errors.New("device is gone")} {
		t.Run(err.Error(), func(t *testing.T) {
			const regions, periodNs = 40, 2_000_000
			k := newKeeper(periodNs)
			k.giveUp = true
			th := startWithUses(t, k, &journal{err: err, only: schedule.Deregister}, regions)
			testwait.Until(t, "every region is registered", func() bool { return th.Stats().Registers+int64(k.failures()) >= 2*regions })
			k.mu.Lock()
			defer k.mu.Unlock()
			if len(k.lateNs) != regions {
				t.Fatalf("%d registrations, want %d", len(k.lateNs), regions)
			}
			for i, late := range k.lateNs {
				if late > schedule.MinPollNs { // forty actions of 400 ns, and no pause
					t.Fatalf("registration %d began %d us late", i, late/1000)
				}
			}
		})
	}
}

func TestThreadReleasesThoughRegistrationsFail(t *testing.T) {
	const regions = 40
	k := newKeeper(0) // due at once
	k.giveUp = true
	j := &journal{err: errors.New("no memory"), only: schedule.Register}
	th := startWithUses(t, k, j, regions)
	testwait.Until(t, "all are released and refused", func() bool { return th.Stats().Deregs == regions && k.failures() == regions })
	if n := len(j.list()); n >= 2*regions {
		t.Errorf("%d calls: no registration was left out, of %d in a row that failed", n, regions)
	}
}

func TestThreadTakesBusyAndForgottenRegionsForNoFailures(t *testing.T) {
	for _, err := range []error{schedule.ErrInUse, schedule.ErrGone} {
		k := newKeeper(schedule.Never / 2)
		k.giveUp = true
		th := startWithUses(t, k, &journal{err: err}, 3)
		testwait.Until(t, "three refusals", func() bool { return k.failures() == 3 })
		if n := th.Stats().Failures; n != 0 {
			t.Errorf("%v: %d failures", err, n)
		}
	}
}

func TestThreadReportsNoDurationForWhatWasSoAlready(t *testing.T) {
	for err, quick := range map[error]bool{nil: false, fmt.Errorf("cache: %w", schedule.ErrAlready): true} {
		k := newKeeper(0)
		th := startWithUses(t, k, &journal{err: err}, 3)
		done := func() []int64 {
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.doneNs
		}
		testwait.Until(t, "three deregistrations and registrations", func() bool { return len(done()) == 6 })
		for _, ns := range done() {
			if (ns == 0) != quick {
				t.Errorf("Registrar said %v: an action took %d ns", err, ns)
			}
		}
		th.Close()
		if s := th.Stats(); (s.Registers+s.Deregs == 0) != quick || s.Failures != 0 {
			t.Errorf("Registrar said %v: %d registrations, %d deregistrations, %d failures", err, s.Registers, s.Deregs, s.Failures)
		}
	}
}

// startWithUses starts a helper with a clock of its own and one use of each of
// n regions, which began just then.
func startWithUses(t *testing.T, k *keeper, j *journal, n int) *Thread {
	hold := make(chan struct{})
	k.onNext = func() { <-hold } // time stands still until the uses are in DQ
	clock, ring := &clocktest.Fake{}, queue.NewRing[schedule.Event](128)
	th := start(t, ThreadOptions{Decider: k, Registrar: j, Clock: clock, CPU: AnyCPU})
	for i := range n {
		ring.Push(use(mem.RegionID(i+1), clock.NowNs()))
	}
	th.Attach(ring)
	close(hold)
	return th
}

func (k *keeper) failures() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.failed
}

// several is a Decider that names one deregistration after the other, as Scheduler does.
type several struct{ *keeper }

func (s *several) Next(nowNs int64) schedule.Action {
	if s.onNext != nil {
		s.onNext()
	}
	if len(s.release) > 0 {
		a := schedule.Action{Kind: schedule.Deregister, Region: s.release[0]}
		s.release = s.release[1:]
		return a
	}
	return schedule.Action{Kind: schedule.Idle}
}

func (s *several) Done(schedule.Action, int64, int64, error) {}

func TestDeregistrationsThatAreDueTogetherArePreparedTogether(t *testing.T) {
	const n = 4
	hold := make(chan struct{})
	s, j, ring := &several{newKeeper(schedule.Never / 2)}, &journal{}, queue.NewRing[schedule.Event](128)
	for i := range n {
		s.release = append(s.release, mem.RegionID(i+1))
	}
	s.onNext = func() { <-hold }
	th := start(t, ThreadOptions{Decider: s, Registrar: j, Clock: &clocktest.Fake{}, CPU: AnyCPU})
	th.Attach(ring)
	close(hold)
	testwait.Until(t, "all are deregistered", func() bool { return th.Stats().Deregs == n })
	th.Close()
	if len(j.prepared) != 1 || len(j.prepared[0]) != n {
		t.Errorf("prepared together: %v, want %d", j.prepared, n)
	}
}
