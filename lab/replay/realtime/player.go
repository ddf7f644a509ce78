package realtime

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"pinwheel"
	"pinwheel/helper"
	"pinwheel/internal/clock"
	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// player replays one rank in real time. Its communication path lives on one
// OS thread, the helper of the manager on another.
type player struct {
	opt      *Options
	policy   string
	arena    *arena
	provider verbs.Provider
	cpus     cpuPair
	trained  *predictor.Trained // of an earlier run; nil: none

	counted   *countingProvider
	manager   *pinwheel.Manager // nil for policy bounce
	thread    *pinwheel.Thread
	firstUses replay.FirstUses
	commRegs  int64           // by the communication path so far
	uses      []*pinwheel.Use // by slot; held if acquired
	copied    []bool          // by slot: no registration, the data is copied
	pool      []byte          // to copy through

	pinned verbs.Region // the pool, for policy bounce
	stats  replay.Counts
	events int64
	runNs  int64
	peak   int64
	mean   float64
	errors predictor.Accuracy
	check  pinCheck
}

// cpuPair is where the two threads run; helper.AnyCPU leaves it to the kernel.
type cpuPair struct{ comm, helper int }

// play replays the events of one run. It must be called on a goroutine of
// its own, which it locks to its thread and never unlocks: the thread keeps
// its affinity and dies with the goroutine.
func (p *player) play(ctx context.Context, next func() ([]replay.Event, error)) error {
	runtime.LockOSThread()
	if p.cpus.comm != helper.AnyCPU {
		var set unix.CPUSet
		set.Set(p.cpus.comm)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("sched_setaffinity to processor %d: %w", p.cpus.comm, err)
		}
	}
	var err error
	if p.check, err = newPinCheck(p.provider); err != nil {
		return err
	}
	p.counted = newCountingProvider(p.provider, unix.Gettid(), p.opt.SeriesFromNs, p.opt.SeriesToNs)
	if err = p.open(); err == nil {
		stop, stopped := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped)
			p.check.watch(p.counted, stop)
		}()
		err = p.run(ctx, next)
		close(stop)
		<-stopped
	}
	return errors.Join(err, p.close())
}

// open makes the manager, or the pool of policy bounce.
func (p *player) open() (err error) {
	p.pool = p.arena.at(replay.BouncePool(p.opt.BounceBytes))
	if p.policy == replay.Bounce {
		p.pinned, err = p.counted.Register(mem.RangeOf(p.pool), replay.Access)
		return err
	}
	o := pinwheel.Options{
		Policy: pinwheel.Policy(p.policy), Provider: p.counted, Costs: p.opt.Costs, ThresholdBytes: int64(p.opt.ThresholdBytes),
		Window: p.opt.Window, IdlePolicy: pinwheel.IdleIgnore, QueueEntries: p.opt.DQEntries, BudgetBytes: p.opt.BudgetOf(p.policy),
		Trained: p.trained, Cost: p.opt.Cost,
	}
	if p.cpus.helper != helper.AnyCPU {
		o.HelperCPUs = []int{p.cpus.helper}
	}
	if p.manager, err = pinwheel.New(o); err != nil {
		return err
	}
	p.thread, err = p.manager.Thread()
	return err
}

// run waits out the timeline: every event comes at its time there, plus what
// registration has held the path up so far. A wait that ends late, since some
// other load had the processor, delays what comes next and nothing after it.
func (p *player) run(ctx context.Context, next func() ([]replay.Event, error)) error {
	begin := clock.NowNs()
	p.counted.start(begin)
	for {
		chunk, err := next()
		if err != nil {
			return err
		}
		for i := range chunk {
			e := &chunk[i]
			p.events++
			if err := waitUntil(ctx, begin+int64(float64(e.AtNs)*p.opt.Scale)+p.stats.StallNs); err != nil {
				return err
			}
			now := clock.NowNs()
			switch e.Kind {
			case replay.UseBegins:
				err = p.acquire(e)
			case replay.UseEnds:
				err = p.release(e)
			case replay.Unmapped:
				err = p.unmapped(e.Range)
			default:
				p.runNs = now - begin
				p.peak, p.mean, p.stats.WastedRegs = p.counted.finish(now)
				p.count()
				return nil
			}
			if err != nil {
				return err
			}
			p.stats.StallNs += clock.NowNs() - now
		}
	}
}

func (p *player) acquire(e *replay.Event) error {
	for int(e.Slot) >= len(p.uses) {
		p.uses, p.copied = append(p.uses, &pinwheel.Use{}), append(p.copied, false)
	}
	p.stats.Needs++
	b := p.arena.at(e.Range)
	p.copied[e.Slot] = p.policy == replay.Bounce
	if !p.copied[e.Slot] {
		u := p.uses[e.Slot]
		err := p.thread.Acquire(u, mem.RangeOf(b), replay.Access, e.Op, (*pinwheel.Site)(e.Site))
		if err == nil {
			p.classify(e, p.counted.used(u.Region().Handle))
			return nil
		}
		if !errors.Is(err, verbs.ErrPinnedMemory) && !errors.Is(err, verbs.ErrRegions) {
			return fmt.Errorf("registering %v: %w", e.Range, err)
		}
		p.stats.Unregistered++
		p.copied[e.Slot] = true
	}
	if !e.Receives {
		p.copyOut(b)
	}
	return nil
}

// classify counts the registrations that the communication path had to do
// for a need, as virtual mode does.
func (p *player) classify(e *replay.Event, commRegs int64) {
	first := p.firstUses.IsFirst(e.Range.PageAligned())
	switch {
	case commRegs == p.commRegs:
	case first:
		p.stats.FirstRegs++
	default:
		p.stats.LateRegs++
	}
	p.commRegs = commRegs
}

func (p *player) release(e *replay.Event) error {
	if !p.copied[e.Slot] {
		p.thread.Release(p.uses[e.Slot])
	} else if e.Receives {
		p.copyIn(p.arena.at(e.Range))
	}
	return nil
}

// unmapped ends the buffers in a range, as a transport does that watches no mapping. Their memory stays for others that
// the trace has there later.
func (p *player) unmapped(r mem.Range) error {
	p.firstUses.Forget(r.PageAligned())
	if p.manager == nil {
		return nil
	}
	for _, m := range p.arena.maps {
		if !m.traced.Overlaps(r) {
			continue
		}
		part := mem.Range{Start: max(r.Start, m.traced.Start), End: min(r.End, m.traced.End)}
		if err := p.manager.Invalidate(mem.RangeOf(p.arena.at(part))); err != nil {
			return err
		}
	}
	return nil
}

// copyOut and copyIn move a message through the pool, as a transport without
// registration does.
func (p *player) copyOut(b []byte) {
	for len(b) > 0 {
		b = b[copy(p.pool, b):]
	}
}

func (p *player) copyIn(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, p.pool):]
	}
}

// count takes the counters of the manager.
func (p *player) count() {
	if p.manager == nil {
		return
	}
	s := p.manager.Stats()
	p.stats.LateWaits = int64(s.Cache.Waited)
	p.stats.HelperRegs, p.stats.HelperDeregs = int64(s.Cache.HelperRegisters), int64(s.Cache.HelperDeregisters)
	p.stats.HelperCPUNs = s.Helper.CPUNs
	p.stats.LostUses = int64(s.LostUses)
}

// close releases everything and checks that the kernel has it all back.
func (p *player) close() (err error) {
	if p.thread != nil {
		for _, u := range p.uses {
			p.thread.Release(u)
		}
		p.thread.Close()
	}
	if p.manager != nil {
		err = p.manager.Close()
		p.errors = p.manager.Predictions()
		p.stats.Predictions = p.errors.N
	}
	if !p.pinned.Range.Empty() {
		err = errors.Join(err, p.counted.Deregister(p.pinned))
	}
	p.check.sample(p.counted)
	return err
}

// spinNs is the last part of a wait, which is spent reading the clock: a
// sleep ends late by some 50 us of timer slack and more of scheduling.
const spinNs = 200_000 // 200 us

// waitUntil returns at a time of clock.NowNs, or soon after ctx is done.
func waitUntil(ctx context.Context, atNs int64) error {
	for {
		left := atNs - clock.NowNs()
		if left <= 0 {
			return nil
		}
		if left <= spinNs {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		ts := unix.NsecToTimespec(min(left-spinNs, 5_000_000)) // 5 ms: a cancelled run ends soon
		_ = unix.Nanosleep(&ts, nil)                           // a signal may end it early: the loop goes on
	}
}
