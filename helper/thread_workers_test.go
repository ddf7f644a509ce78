package helper

import (
	"errors"
	"sync"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/schedule"
)

// burst is a Decider that wants so many regions registered at once.
type burst struct {
	keeper
	left    int
	workers atomic.Int64
	done    atomic.Int64
	errs    atomic.Int64
}

func (b *burst) SetWorkers(n int) { b.workers.Store(int64(n)) }

func (b *burst) Next(int64) schedule.Action {
	if b.left == 0 || b.workers.Load() == 0 {
		return schedule.Action{Kind: schedule.Idle}
	}
	b.left--
	return schedule.Action{Kind: schedule.Register, Region: mem.RegionID(b.left), Aside: b.workers.Load() > 1}
}

func (b *burst) Done(_ schedule.Action, _, _ int64, err error) {
	if err != nil {
		b.errs.Inc()
	}
	b.done.Inc()
}

// meeting is a Registrar whose registrations wait for each other.
type meeting struct {
	journal
	mu    sync.Mutex
	here  int
	needs int
	full  chan struct{}
	panic bool
}

func (m *meeting) Register(id mem.RegionID) error {
	m.mu.Lock()
	if m.here++; m.here == m.needs {
		close(m.full)
	}
	m.mu.Unlock()
	<-m.full
	if m.panic {
		panic("broken device")
	}
	return m.note(schedule.Register, id)
}

// spare is a placement with so many workers.
func spare(workers int) Placement {
	p := Placement{CPU: AnyCPU, Helpers: 1, Spares: workers - 1}
	for i := range p.Spare {
		p.Spare[i] = AnyCPU
	}
	return p
}

func TestWorkersRegisterAtTheSameTime(t *testing.T) {
	testwait.Bound(t)
	b := &burst{keeper: *newKeeper(0), left: MostWorkers}
	m := &meeting{needs: MostWorkers, full: make(chan struct{})}
	th := start(t, ThreadOptions{Decider: b, Registrar: m, Clock: &clocktest.Fake{}, CPU: AnyCPU})
	th.Place(spare(MostWorkers))
	testwait.Until(t, "all are done", func() bool { return b.done.Load() == MostWorkers })
	if s := th.Stats(); s.Registers != MostWorkers || s.ByWorkers != MostWorkers || s.Failures != 0 {
		t.Errorf("%d registrations, %d by workers, %d failures", s.Registers, s.ByWorkers, s.Failures)
	}
}

// Without spare cores, or with more to do than workers, the helper registers by itself.
func TestHelperRegistersWhatNoWorkerTakes(t *testing.T) {
	testwait.Bound(t)
	for workers, alone := range map[int]bool{1: true, 2: false} {
		b := &burst{keeper: *newKeeper(0), left: 50}
		th := start(t, ThreadOptions{Decider: b, Registrar: &journal{err: errors.New("no memory")}, Clock: &clocktest.Fake{}, CPU: AnyCPU})
		th.Place(spare(workers))
		testwait.Until(t, "all have failed", func() bool { return b.done.Load() == 50 })
		th.Close()
		if s := th.Stats(); b.errs.Load() != 50 || alone && s.ByWorkers > 0 {
			t.Errorf("%d workers: %d errors, %d by workers", workers, b.errs.Load(), s.ByWorkers)
		}
	}
}

func TestFaultOfAWorkerStopsTheHelperOnce(t *testing.T) {
	testwait.Bound(t)
	b := &burst{keeper: *newKeeper(0), left: MostWorkers}
	m := &meeting{needs: MostWorkers, full: make(chan struct{}), panic: true}
	faults := make(chan *Fault, MostWorkers)
	th, err := StartThread(ThreadOptions{Decider: b, Registrar: m, Clock: &clocktest.Fake{}, CPU: AnyCPU,
		OnFault: func(f *Fault) { faults <- f }})
	if err != nil {
		t.Fatal(err)
	}
	th.Place(spare(MostWorkers))
	if f := <-faults; f.Panic != "broken device" {
		t.Errorf("fault %v", f)
	}
	th.Close()
	if n := len(faults); n > 0 || !th.Stats().Faulted {
		t.Errorf("%d more faults, faulted: %t", n, th.Stats().Faulted)
	}
}

// A helper that is parked or closed waits for its workers: nothing is registered after that.
func TestWorkersAreDoneBeforeTheHelperIs(t *testing.T) {
	testwait.Bound(t)
	b := &burst{keeper: *newKeeper(0), left: 3}
	m := &meeting{needs: 4, full: make(chan struct{})} // the fourth is the test
	th := start(t, ThreadOptions{Decider: b, Registrar: m, Clock: &clocktest.Fake{}, CPU: AnyCPU})
	th.Place(spare(MostWorkers))
	began := func(n int) func() bool {
		return func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			return m.here == n
		}
	}
	testwait.Until(t, "three have begun", began(3))
	th.Place(Placement{CPU: AnyCPU, Parked: true, Helpers: 1})
	closed := make(chan error, 1)
	go func() { closed <- th.Close() }()
	select {
	case <-closed:
		t.Error("closed while workers register")
	default:
	}
	_ = m.Register(100)
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if n := len(m.list()); n != 4 {
		t.Errorf("%d registrations, want 4", n)
	}
}
