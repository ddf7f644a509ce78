package helper

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"go.uber.org/atomic"
	"golang.org/x/sys/unix"

	"pinwheel/internal/clock"
	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/schedule"
)

// Source is the consumer's side of a DQ: Pop moves the oldest event to *e. It
// neither blocks nor allocates. queue.Ring is one.
type Source interface {
	Pop(e *schedule.Event) bool
}

// ThreadOptions say what a Thread drives and where.
type ThreadOptions struct {
	Decider   schedule.Decider // owned by the Thread from now on
	Registrar Registrar        // carries out the actions; safe for concurrent use if a Placement has Spares
	Clock     clock.Clock      // nil: clock.Shared
	CPU       int              // processor to run on, or AnyCPU
	// Polls makes the helper look at DQ every 20 us, which takes much of a processor, instead of as its pacer says.
	Polls bool
	// Gone is as in schedule.LoopOptions: regcache.Cache.Gone. It is called at every look at an empty DQ, so it must
	// cost next to nothing when there are none. nil: there never are any.
	Gone func(buf []mem.RegionID) []mem.RegionID
	// OnFault is called once if the helper stops because of a Fault. It may call
	// Close. nil: ignored.
	OnFault func(*Fault)

	// For tests: the processor time of the helper's thread, as the Decider counts it, and how long it waited for a
	// processor. nil: the thread's own.
	cpuNs    func() int64
	runDelay func() (schedule.RunDelay, bool)
}

// Fault is a panic of the Decider or the Registrar that ended the helper.
type Fault = fault.Fault

// ThreadStats are counters since the start of a Thread.
type ThreadStats struct {
	Cost schedule.CostCounts // as of the last sleep

	Events    int64 // taken from DQ
	Registers int64 // registrations done
	Deregs    int64 // deregistrations done
	Failures  int64 // actions that failed, but not because a region was in use or gone
	Wakeups   int64 // sleeps
	CPUNs     int64 // processor time of the thread and of its workers
	ActionNs  int64 // of it in registrations and deregistrations, estimated from one in 8
	ByWorkers int64 // registrations and deregistrations that workers did
	// Starts says how far from its planned moment each registration began that was planned.
	Starts  schedule.Histogram
	Faulted bool // the helper stopped because of a fault
	// As of the last sleep. Shared is how long the helper ran on the processor of its rank, and SharedCPU the processor
	// time that it used there.
	Late                  schedule.LateUses
	SharedNs, SharedCPUNs int64
}

// Thread drives a Decider in real time on an OS thread of its own. It takes
// one event, lets the Decider act, and repeats; with neither events nor
// actions it waits as its pacer says.
//
// All methods are safe for concurrent use.
type Thread struct {
	opt     ThreadOptions
	stop    atomic.Bool
	done    chan struct{} // closed when the OS thread is done with everything
	sources atomic.Pointer[[]Source]
	place   atomic.Pointer[Placement] // the latest, nil once it was looked at
	wake    chan struct{}             // ends parking and long sleeps; holds one token
	misses  sharedMisses              // until the helper has looked
	resting atomic.Bool               // the helper leaves DQ alone: there is no use in waking it for that
	counts  counters
	ended   sync.WaitGroup // for workers

	// mu orders changes by other goroutines, all of them rare, and the end of
	// the thread. It is held for a few instructions; no lock is taken under it.
	mu    sync.Mutex
	tid   int // 0 once the thread has ended
	cpuNs int64
	cost  schedule.CostCounts
	// As the helper has published them.
	late   schedule.LateUses
	shared shared
}

// counters are written by the helper and read by Stats.
type counters struct {
	events, registers, deregs, failures, wakeups, actionNs, byWorkers, workersCPU atomic.Int64

	starts  sharedHistogram
	faulted atomic.Bool
}

// StartThread starts the helper. It fails, with nothing left running, if the
// processor asked for is not available to this process.
func StartThread(o ThreadOptions) (*Thread, error) {
	if o.Clock == nil {
		o.Clock = clock.Shared{}
	}
	if o.cpuNs == nil {
		o.cpuNs = ownCPUNs
	}
	if o.Gone == nil {
		o.Gone = func(buf []mem.RegionID) []mem.RegionID { return buf }
	}
	t := &Thread{opt: o, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	t.sources.Store(&[]Source{})
	started := make(chan error, 1)
	go t.run(started)
	if err := <-started; err != nil {
		<-t.done
		return nil, err
	}
	return t, nil
}

// Attach makes the helper take events from s too.
func (t *Thread) Attach(s Source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := append(slices.Clone(*t.sources.Load()), s)
	t.sources.Store(&list)
}

// Detach makes the helper leave s alone. Events still in it may be lost; the
// helper may take one more after Detach has returned.
func (t *Thread) Detach(s Source) {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(*t.sources.Load()), func(o Source) bool { return o == s })
	t.sources.Store(&list)
}

// Place makes the helper run on another processor, or not run at all until it
// is placed again. A parked helper uses no processor time. Meanwhile events overrun
// DQ, regions stay as they are, and the communication path registers what it needs.
func (t *Thread) Place(p Placement) {
	t.place.Store(&p)
	t.wakeUp()
}

// Missed tells the Decider of a region that the communication path had to register, or to wait for. It ends a long sleep of the helper, which did not know of that use, or took it to come later. A helper that leaves DQ alone hears
// of it after that. With a Region of zero, which is not known, it only wakes up. Missed never blocks.
func (t *Thread) Missed(m schedule.Miss) {
	if m.Region != 0 {
		t.misses.add(m)
	}
	if !t.resting.Load() {
		t.wakeUp()
	}
}

// wakeUp ends any sleep of the helper.
func (t *Thread) wakeUp() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Stats returns the counters as they are now.
func (t *Thread) Stats() ThreadStats {
	c := &t.counts
	s := ThreadStats{
		Events: c.events.Load(), Registers: c.registers.Load(), Deregs: c.deregs.Load(), Failures: c.failures.Load(),
		Wakeups: c.wakeups.Load(), ActionNs: c.actionNs.Load(), ByWorkers: c.byWorkers.Load(),
		Starts: c.starts.load(), Faulted: c.faulted.Load(),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Cost = t.cost
	t.updateCPULocked()
	s.CPUNs, s.Late = t.cpuNs+c.workersCPU.Load(), t.late
	s.SharedNs, s.SharedCPUNs = t.shared.ns, t.shared.cpuNs
	return s
}

// updateCPULocked reads the processor time of the thread while it lives.
func (t *Thread) updateCPULocked() {
	if t.tid == 0 {
		return
	}
	if ns, err := threadCPUNs(t.tid); err == nil {
		t.cpuNs = ns
	}
}

// Close stops the helper and waits until its thread has ended: until an action in
// progress is done, or for a sleep of at most 10 ms. Registered regions stay
// registered. Close may be called at any time and more than once, but not by the
// Decider or Registrar.
func (t *Thread) Close() error {
	t.stop.Store(true)
	t.wakeUp()
	<-t.done
	return nil
}

// run is the life of the OS thread. The thread is never unlocked: the runtime
// ends it with the goroutine, so that its affinity and timer slack are not
// inherited by another goroutine.
func (t *Thread) run(started chan<- error) {
	runtime.LockOSThread()
	defer t.finish()
	if t.opt.CPU != AnyCPU {
		if err := pinThread(t.opt.CPU); err != nil {
			started <- fmt.Errorf("helper: sched_setaffinity to processor %d: %w (choose another with PINWHEEL_HELPER_CPU)",
				t.opt.CPU, err)
			return
		}
	}
	// Failure makes sleeps less exact, which the pacer measures anyway.
	_ = setExactTimers()
	if t.opt.runDelay == nil {
		delays := openRunDelay()
		defer delays.close()
		t.opt.runDelay = delays.read
	}
	t.mu.Lock()
	t.tid = unix.Gettid()
	t.mu.Unlock()
	started <- nil
	d := newDriver(t)
	defer d.crew.dismiss()
	d.run()
}

// finish contains a panic: the program runs on, and the communication path
// registers every region that it needs.
func (t *Thread) finish() {
	var f *Fault
	if p := recover(); p != nil {
		f = fault.Of(p)
		t.counts.faulted.Store(true)
	}
	t.mu.Lock()
	t.updateCPULocked()
	t.tid = 0
	t.mu.Unlock()
	t.ended.Wait()
	close(t.done)
	if f != nil && t.opt.OnFault != nil {
		t.opt.OnFault(f)
	}
}
