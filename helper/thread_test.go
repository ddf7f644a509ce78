package helper

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/atomic"
	"go.uber.org/goleak"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/queue"
	"pinwheel/schedule"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, o ThreadOptions) *Thread {
	t.Helper()
	if o.Registrar == nil {
		o.Registrar = &journal{}
	}
	th, err := StartThread(o)
	if err != nil {
		t.Fatal(err)
	}
	testwait.Bound(t, func() any { return th.Stats() })
	t.Cleanup(func() { th.Close() })
	return th
}

func use(id mem.RegionID, startNs int64) *schedule.Event {
	e := &schedule.Event{Pages: 1}
	e.Region, e.StartNs, e.EndNs = id, startNs, startNs
	return e
}

func TestThreadDeregistersAfterUseAndRegistersByDeadline(t *testing.T) {
	clock, k, j := &clocktest.Fake{LateNs: 20_000}, newKeeper(3*ms), &journal{}
	uses := stamped{clock, make(chan mem.RegionID, 2)}
	uses.ids <- 7
	uses.ids <- 8
	th := start(t, ThreadOptions{Decider: k, Registrar: j, Clock: clock, CPU: AnyCPU})
	th.Attach(uses)
	testwait.Until(t, "both regions are registered again", func() bool { return th.Stats().Registers == 2 })
	want := []schedule.Action{
		{Kind: schedule.Deregister, Region: 7}, {Kind: schedule.Deregister, Region: 8},
		{Kind: schedule.Register, Region: 7}, {Kind: schedule.Register, Region: 8},
	}
	if got := j.list(); !slices.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, late := range k.lateNs {
		// Early by twice the margin for a late wake-up, which is 50 us at the start. The clock of this test advances
		// only by what the thread itself does.
		if late < -100_000 || late >= clock.LateNs {
			t.Errorf("registration began %d ns after its deadline; sleeps are %d ns late", late, clock.LateNs)
		}
	}
}

func TestThreadTakesEventsOfAllSourcesInTurn(t *testing.T) {
	k := newKeeper(schedule.Never / 2)
	var rings []*queue.Ring[schedule.Event]
	for range 3 {
		rings = append(rings, queue.NewRing[schedule.Event](64))
	}
	for i, r := range rings {
		for range 20 {
			r.Push(use(mem.RegionID(i+1), 0))
		}
	}
	th := start(t, ThreadOptions{Decider: k, CPU: AnyCPU})
	for _, r := range rings {
		th.Attach(r)
	}
	testwait.Until(t, "60 events", func() bool { return th.Stats().Events == 60 })
	th.Detach(rings[1])
	testwait.Until(t, "detached source keeps its events", func() bool {
		rings[1].Push(use(9, 0))
		before := th.Stats().Events
		rings[0].Push(use(1, 0))
		testwait.Until(t, "event of attached source", func() bool { return th.Stats().Events > before })
		return !slices.ContainsFunc(k.seen()[60:], func(e schedule.Event) bool { return e.Region == 9 })
	})
}

// park parks a helper, and returns when it is.
func park(t *testing.T, th *Thread) {
	t.Helper()
	th.Place(Placement{Parked: true})
	testwait.Until(t, "the helper is parked", func() bool { return th.place.Load() == nil })
}

func (k *keeper) seen() []schedule.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.observed)
}

func TestThreadForgetsOnlyAfterEarlierEvents(t *testing.T) {
	testwait.Bound(t)
	k := newKeeper(schedule.Never / 2)
	ring := queue.NewRing[schedule.Event](64)
	hold := make(chan struct{})
	k.onNext = func() { <-hold }
	var gone atomic.Bool
	th := start(t, ThreadOptions{Decider: k, CPU: AnyCPU, Gone: func(buf []mem.RegionID) []mem.RegionID {
		if gone.Swap(false) {
			buf = append(buf, 5)
		}
		return buf
	}})
	th.Attach(ring)
	for range 50 {
		ring.Push(use(5, 0))
	}
	gone.Store(true)
	close(hold)
	testwait.Until(t, "region 5 is forgotten", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(k.forgotten) > 0 && len(k.observed) != 50 {
			t.Fatalf("forgotten after %d of 50 events", len(k.observed))
		}
		return slices.Equal(k.forgotten, []mem.RegionID{5})
	})
}

func TestThreadContainsPanicAndSaysSoOnce(t *testing.T) {
	testwait.Bound(t)
	for _, where := range []string{"decider", "registrar"} {
		t.Run(where, func(t *testing.T) {
			var th *Thread
			faults := make(chan *Fault, 2)
			k := newKeeper(0)
			o := ThreadOptions{Decider: k, Registrar: &journal{}, CPU: AnyCPU, OnFault: func(f *Fault) { faults <- f }}
			ring := queue.NewRing[schedule.Event](8)
			if where == "decider" {
				k.onNext = func() {
					if len(k.due) > 0 {
						panic("trained fault")
					}
				}
			} else {
				o.Registrar = panicky{}
			}
			th = start(t, o)
			th.Attach(ring)
			ring.Push(use(1, 0))
			f := <-faults
			if s := f.Error(); !strings.Contains(s, "trained fault") || strings.Contains(s, "\n") {
				t.Errorf("fault %q does not name its cause in one line", s)
			}
			if !strings.Contains(string(f.Stack), "thread_") {
				t.Errorf("the stack does not say where: %s", f.Stack)
			}
			if !th.Stats().Faulted {
				t.Error("Stats does not show the fault")
			}
			th.Attach(queue.NewRing[schedule.Event](2)) // other calls are still safe
			th.Place(Placement{Parked: true})
			if err := th.Close(); err != nil {
				t.Error(err)
			}
			if len(faults) != 0 {
				t.Error("OnFault called twice")
			}
		})
	}
}

type panicky struct{}

func (panicky) Prepare([]mem.RegionID)        {}
func (panicky) Register(mem.RegionID) error   { panic("trained fault") }
func (panicky) Deregister(mem.RegionID) error { panic("trained fault") }

func TestThreadDoesNotBusyLoopOverFailingActions(t *testing.T) {
	clock, k, j := &clocktest.Fake{}, newKeeper(0), &journal{err: errors.New("no memory")}
	ring := queue.NewRing[schedule.Event](8)
	th := start(t, ThreadOptions{Decider: k, Registrar: j, Clock: clock, CPU: AnyCPU})
	th.Attach(ring)
	ring.Push(use(1, 0))
	testwait.Until(t, "100 failures", func() bool { return th.Stats().Failures >= 100 })
	th.Close()
	// 100 failures without pauses would take 100*200 ns of this clock; with
	// the pause at its limit most of them take 5 ms each.
	if s, now := th.Stats(), clock.NowNs(); now < s.Failures/2*10*ms {
		t.Errorf("%d failures in %d us", s.Failures, now/1000)
	}
}

func TestThreadRecoversFromPassingFailures(t *testing.T) {
	clock, k, j := &clocktest.Fake{}, newKeeper(0), &journal{err: errors.New("no memory")}
	ring := queue.NewRing[schedule.Event](8)
	th := start(t, ThreadOptions{Decider: k, Registrar: j, Clock: clock, CPU: AnyCPU})
	th.Attach(ring)
	ring.Push(use(1, 0))
	testwait.Until(t, "failures", func() bool { return th.Stats().Failures >= 20 })
	j.mu.Lock()
	j.err = nil
	j.mu.Unlock()
	testwait.Until(t, "deregistration and registration", func() bool { s := th.Stats(); return s.Deregs == 1 && s.Registers == 1 })
}

// busyNow is a Decider that has more to look at, for a while.
type busyNow struct {
	*keeper
	looks atomic.Int64
}

func (b *busyNow) Next(nowNs int64) schedule.Action {
	if b.looks.Inc() > 100 {
		return schedule.Action{Kind: schedule.Idle}
	}
	return schedule.Action{Kind: schedule.Wait, UntilNs: nowNs}
}

func TestThreadTakesNoOtherLookForADeadline(t *testing.T) {
	b := &busyNow{keeper: newKeeper(0)}
	th := start(t, ThreadOptions{Decider: b, Clock: &clocktest.Fake{}, CPU: AnyCPU})
	testwait.Until(t, "all is looked at", func() bool { return b.looks.Load() > 101 })
	s := th.Stats()
	if n := s.Starts.Count(); n != 0 {
		t.Errorf("%d registrations were planned, want none", n)
	}
}

func TestThreadForgetsRegionThatTheRegistrarDoesNotKnow(t *testing.T) {
	k, ring := newKeeper(0), queue.NewRing[schedule.Event](8)
	th := start(t, ThreadOptions{Decider: k, Registrar: &journal{err: fmt.Errorf("cache: %w", schedule.ErrGone)}, CPU: AnyCPU})
	th.Attach(ring)
	ring.Push(use(3, 0))
	testwait.Until(t, "region 3 is forgotten", func() bool {
		k.mu.Lock()
		defer k.mu.Unlock()
		return slices.Contains(k.forgotten, 3)
	})
}

func TestThreadRefusesProcessorThatIsNotThere(t *testing.T) {
	_, err := StartThread(ThreadOptions{Decider: newKeeper(0), Registrar: &journal{}, CPU: 1023})
	if err == nil || !strings.Contains(err.Error(), "1023") {
		t.Errorf("StartThread on processor 1023: %v, want an error that names it", err)
	}
}

func TestThreadStartsAndStopsAThousandTimes(t *testing.T) {
	ring := queue.NewRing[schedule.Event](8)
	for i := range 1000 {
		th, err := StartThread(ThreadOptions{Decider: newKeeper(0), Registrar: &journal{}, CPU: AnyCPU})
		if err != nil {
			t.Fatal(err)
		}
		th.Attach(ring)
		ring.Push(use(1, 0))
		if i%3 == 0 { // Close from several goroutines at once
			go th.Close()
		}
		th.Close()
		th.Close()
	}
	var tasks []os.DirEntry
	testwait.Until(t, "at most 100 OS threads are left", func() bool {
		var err error
		if tasks, err = os.ReadDir("/proc/self/task"); err != nil {
			t.Skip("no /proc: can't count the threads of this process")
		}
		return len(tasks) <= 100
	}, func() any { return len(tasks) })
}

func TestThreadParksWithoutProcessorTimeAndResumes(t *testing.T) {
	k, ring := newKeeper(schedule.Never/2), queue.NewRing[schedule.Event](8)
	th := start(t, ThreadOptions{Decider: k, CPU: AnyCPU})
	th.Attach(ring)
	park(t, th)
	ring.Push(use(1, 0))
	testwait.Until(t, "the counters stand still, that of processor time too", func() bool {
		before := th.Stats()
		time.Sleep(30 * time.Millisecond)
		return th.Stats() == before
	})
	if n := th.Stats().Events; n != 0 {
		t.Errorf("parked, the helper took %d events", n)
	}
	th.Place(Placement{CPU: AnyCPU, Helpers: 3})
	testwait.Until(t, "the event is taken", func() bool { return th.Stats().Events == 1 })
	testwait.Until(t, "the Decider is told how long three helpers on a processor wait", func() bool { return k.shareNs.Load() > 0 })
	th.Place(Placement{CPU: AnyCPU, Helpers: 1})
	testwait.Until(t, "the share is gone", func() bool { return k.shareNs.Load() == 0 })
	th.Place(Placement{Parked: true})
	th.Close() // ends a parked helper too
}
