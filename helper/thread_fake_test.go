package helper

import (
	"slices"
	"sync"

	"go.uber.org/atomic"

	"pinwheel/internal/clock/clocktest"
	"pinwheel/mem"
	"pinwheel/schedule"
)

const (
	us     = int64(1_000)
	ms     = 1_000 * us
	second = 1_000 * ms
)

// keeper is a Decider that deregisters every region after its use and wants
// it back periodNs after the use began. It logs what it is told.
type keeper struct {
	*schedule.Scheduler // its budget only
	periodNs            int64
	due                 map[mem.RegionID]int64
	release             []mem.RegionID
	onNext              func()
	giveUp              bool // forget what failed, as Scheduler does

	mu        sync.Mutex
	observed  []schedule.Event
	forgotten []mem.RegionID
	missed    []mem.RegionID
	lateNs    []int64 // of each registration, against its deadline
	failed    int
	doneNs    []int64 // how long each action took that did not fail
	shareNs   atomic.Int64
}

func (k *keeper) SetShareNs(ns int64) { k.shareNs.Store(ns) }

func (k *keeper) Cost() schedule.CostCounts { return schedule.CostCounts{Share: .01} }

func (k *keeper) Missed(m schedule.Miss, _ int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.missed = append(k.missed, m.Region)
}

func newKeeper(periodNs int64) *keeper {
	return &keeper{Scheduler: schedule.NewScheduler(nil, schedule.SchedulerOptions{}), periodNs: periodNs, due: map[mem.RegionID]int64{}}
}

func (k *keeper) Observe(e schedule.Event, nowNs int64) {
	k.mu.Lock()
	k.observed = append(k.observed, e)
	k.mu.Unlock()
	k.release = append(k.release, e.Region)
	k.due[e.Region] = e.StartNs + k.periodNs
}

func (k *keeper) Next(nowNs int64) schedule.Action {
	if k.onNext != nil {
		k.onNext()
	}
	if len(k.release) > 0 {
		return schedule.Action{Kind: schedule.Deregister, Region: k.release[0]}
	}
	var first mem.RegionID
	for id, ns := range k.due {
		if first == 0 || ns < k.due[first] || ns == k.due[first] && id < first {
			first = id
		}
	}
	switch ns := k.due[first]; {
	case first == 0:
		return schedule.Action{Kind: schedule.Idle}
	case ns <= nowNs:
		return schedule.Action{Kind: schedule.Register, Region: first}
	default:
		return schedule.Action{Kind: schedule.Wait, UntilNs: ns}
	}
}

func (k *keeper) Done(a schedule.Action, startNs, endNs int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err != nil {
		k.failed++
		switch {
		case k.giveUp && a.Kind == schedule.Deregister:
			k.release = k.release[1:]
		case k.giveUp:
			delete(k.due, a.Region)
		}
		return
	}
	k.doneNs = append(k.doneNs, endNs-startNs)
	if a.Kind == schedule.Deregister {
		k.release = k.release[1:]
		return
	}
	k.lateNs = append(k.lateNs, startNs-k.due[a.Region])
	delete(k.due, a.Region)
}

func (k *keeper) Forget(id mem.RegionID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgotten = append(k.forgotten, id)
}

// stamped is a Source of uses that happen when the thread takes them in. A test that stamps them itself may lose its
// processor before it hands them over, and the thread's sleeps move the clock meanwhile.
type stamped struct {
	clock *clocktest.Fake
	ids   chan mem.RegionID
}

func (s stamped) Pop(e *schedule.Event) bool {
	select {
	case id := <-s.ids:
		*e = *use(id, s.clock.NowNs())
		return true
	default:
		return false
	}
}

// journal is a Registrar that notes its calls.
type journal struct {
	mu       sync.Mutex
	calls    []schedule.Action
	prepared [][]mem.RegionID
	err      error
	only     schedule.ActionKind // err is for actions of this kind; 0 for all
}

func (j *journal) note(k schedule.ActionKind, id mem.RegionID) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.calls = append(j.calls, schedule.Action{Kind: k, Region: id})
	if j.only != 0 && j.only != k {
		return nil
	}
	return j.err
}

func (j *journal) Prepare(ids []mem.RegionID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.prepared = append(j.prepared, slices.Clone(ids))
}

func (j *journal) Register(id mem.RegionID) error   { return j.note(schedule.Register, id) }
func (j *journal) Deregister(id mem.RegionID) error { return j.note(schedule.Deregister, id) }

func (j *journal) list() []schedule.Action {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.calls)
}
