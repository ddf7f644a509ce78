package engine

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"go.uber.org/atomic"
	"go.uber.org/goleak"

	"pinwheel/helper"
	"pinwheel/internal/fault"
	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/schedule"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// restless is a Decider that has regions registered and released without a pattern, as fast as workers can.
type restless struct {
	ids     []mem.RegionID
	workers atomic.Int64
	rand    *rand.Rand
}

func (r *restless) Observe(schedule.Event, int64)             {}
func (r *restless) Done(schedule.Action, int64, int64, error) {}
func (r *restless) Forget(mem.RegionID)                       {}
func (r *restless) SetShareNs(int64)                          {}
func (r *restless) Missed(schedule.Miss, int64)               {}
func (r *restless) SetWorkers(n int)                          { r.workers.Store(int64(n)) }
func (r *restless) SetShared(bool, int64) float64             { return 0 }
func (r *restless) Spend(int64, int64)                        {}
func (r *restless) Rest(int64) int64                          { return 0 }
func (r *restless) Cost() schedule.CostCounts                 { return schedule.CostCounts{} }
func (r *restless) Late() schedule.LateUses                   { return schedule.LateUses{} }
func (r *restless) Next(int64) schedule.Action {
	if r.workers.Load() < 2 {
		return schedule.Action{Kind: schedule.Idle}
	}
	kind := schedule.Register
	if r.rand.IntN(2) == 0 {
		kind = schedule.Deregister
	}
	return schedule.Action{Kind: kind, Region: r.ids[r.rand.IntN(len(r.ids))], Aside: r.rand.IntN(4) > 0}
}

// flaky asks fail before every call of a provider.
type flaky struct {
	verbs.Provider
	fail func() error
}

func (f flaky) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if err := f.fail(); err != nil {
		return verbs.Region{}, err
	}
	return f.Provider.Register(r, a)
}

func (f flaky) Deregister(g verbs.Region) error {
	if err := f.fail(); err != nil {
		return err
	}
	return f.Provider.Deregister(g)
}

// Threads communicate, workers register and release the same regions, and the device fails, until it panics below a
// worker or below the helper. Then nobody waits, and nothing stays pinned.
func TestFaultsOfWorkersLeaveNobodyWaitingAndNothingPinned(t *testing.T) {
	testwait.Bound(t)
	for seed := range uint64(8) {
		hammerWorkers(t, seed)
	}
	goleak.VerifyNone(t)
}

func hammerWorkers(t *testing.T, seed uint64) {
	const regions, users, calls = 24, 3, 3000
	var n atomic.Int64
	var stopped atomic.Bool // the fault has been there
	errDevice := errors.New("the device is busy")
	p := sim.New(sim.Options{})
	fails := func() error {
		runtime.Gosched()
		switch k := n.Inc(); {
		case k == calls:
			panic("the device is broken")
		case k%13 == 0 && !stopped.Load():
			return errDevice
		}
		return nil
	}
	cache, err := regcache.New(flaky{p, fails},
		regcache.Options{MaxBytes: regions / 2 * int64(mem.PageSize), KnownRegions: 2 * regions})
	if err != nil {
		t.Fatal(err)
	}
	rng := func(i int) mem.Range {
		start := mem.Addr(1<<20 + i*int(2*mem.PageSize))
		return mem.Range{Start: start, End: start + mem.Addr(mem.PageSize)}
	}
	d := &restless{rand: rand.New(rand.NewPCG(seed, 0))}
	th, err := cache.Thread()
	if err != nil {
		t.Fatal(err)
	}
	for i := range regions {
		ref, _, err := th.Acquire(rng(i), verbs.AccessLocalWrite)
		if err != nil {
			continue // it is one of those that fail
		}
		d.ids = append(d.ids, ref.ID())
		th.Release(ref)
	}
	th.Close()
	faults := make(chan *fault.Fault, 8)
	h, err := helper.StartThread(helper.ThreadOptions{
		Decider: d, Registrar: Registrar(Single{cache}), CPU: helper.AnyCPU, Gone: Single{cache}.Gone,
		OnFault: func(f *fault.Fault) { stopped.Store(true); faults <- f },
	})
	if err != nil {
		t.Fatal(err)
	}
	spare := helper.Placement{CPU: helper.AnyCPU, Helpers: 1, Spares: helper.MostWorkers - 1}
	for i := range spare.Spare {
		spare.Spare[i] = helper.AnyCPU
	}
	h.Place(spare)
	testwait.Until(t, "workers work", func() bool { return h.Stats().ByWorkers > 0 })
	n.Store(0)
	var ended sync.WaitGroup
	for u := range users {
		ended.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(u)+1))
			own, err := cache.Thread()
			if err != nil {
				t.Error(err)
				return
			}
			defer own.Close()
			for !stopped.Load() && n.Load() < 2*calls {
				ref, _, err := own.Acquire(rng(r.IntN(regions)), verbs.AccessLocalWrite)
				if err == nil {
					runtime.Gosched()
					own.Release(ref)
				} else if !errors.Is(err, errDevice) && !errors.Is(err, verbs.ErrPinnedMemory) && fault.In(err) == nil {
					t.Errorf("acquire: %v", err)
				}
			}
		})
	}
	ended.Wait()
	h.Close()
	if len(faults) > 1 {
		t.Errorf("%d faults of one helper", len(faults))
	}
	stopped.Store(true)
	if err := cache.Close(); err != nil {
		t.Error(err)
	}
	if s := p.Stats(); s.Regions != 0 || s.PinnedBytes != 0 || s.UnknownRegions != 0 {
		t.Errorf("seed %d: %d regions, %d bytes left, %d unknown", seed, s.Regions, s.PinnedBytes, s.UnknownRegions)
	}
}
