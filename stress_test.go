package pinwheel

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// Communication threads, helper and invalidations at once over a provider that
// fails and dawdles. Run with -race. What must hold: an acquired use is
// registered until it is released, the budget is kept, every registration is
// released once, and errors are only those of the provider.
func TestThreadsAndHelperUnderFaultsAndShortage(t *testing.T) {
	testwait.Bound(t)
	const budgetBytes = 24 << 20
	// A tenth of the calls fail, a tenth takes longer.
	fail := func(sim.Op, mem.Range) error {
		switch rand.IntN(30) {
		case 0:
			return verbs.ErrBusy
		case 1:
			return verbs.ErrPinnedMemory
		case 2:
			return verbs.ErrNotMapped
		}
		return nil
	}
	p := &watchful{Provider: sim.New(sim.Options{
		Fail: func(op sim.Op, r mem.Range) error {
			if op == sim.OpDeregister {
				return nil // would leak by design, and hide leaks that are not
			}
			return fail(op, r)
		},
		Delay: func(sim.Op, mem.Range) time.Duration { return time.Duration(rand.IntN(10)/9) * 50 * time.Microsecond },
		Wait:  true,
	})}
	for _, policy := range []Policy{Pinwheel, Paper, OnDemand} {
		m, _ := start(t, Options{Policy: policy, Provider: p, BudgetBytes: budgetBytes, QueueEntries: 16})
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() { hammer(t, m, p, worker) })
		}
		wg.Go(func() {
			for i := range 100 {
				_ = m.Invalidate(region(i % 32))
				time.Sleep(200 * time.Microsecond)
			}
		})
		wg.Wait()
		if s := p.sim().Stats(); s.PeakPinnedBytes > budgetBytes || s.UnknownRegions > 0 {
			t.Errorf("%s: %d bytes at peak with a budget of %d, %d deregistrations of what was not registered",
				policy, s.PeakPinnedBytes, int64(budgetBytes), s.UnknownRegions)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if u := p.sim().Usage(); u.Regions != 0 || u.PinnedBytes != 0 {
			t.Errorf("%s: %+v is left after Close", policy, u)
		}
	}
}

func hammer(t *testing.T, m *Manager, p *watchful, worker int) {
	th, err := m.Thread()
	if err != nil {
		t.Error(err)
		return
	}
	defer th.Close()
	rng := rand.New(rand.NewPCG(1, uint64(worker)))
	var uses [3]Use
	for i := range 1500 {
		u := &uses[i%len(uses)]
		th.Release(u)
		r := region(rng.IntN(32))
		if rng.IntN(4) == 0 {
			r.End = r.Start + 128<<10
		}
		switch err := th.Acquire(u, r, access, Op(i%5), nil); {
		case err == nil && !p.registered(u.Region()):
			t.Errorf("acquired %v is not registered", u.Region())
		case err != nil && !errors.Is(err, verbs.ErrPinnedMemory) && !errors.Is(err, verbs.ErrNotMapped) &&
			!errors.Is(err, verbs.ErrBusy):
			t.Errorf("Acquire: %v", err)
		}
		if i%50 == 0 {
			time.Sleep(500 * time.Microsecond)
		}
	}
	for i := range uses {
		th.Release(&uses[i])
	}
}

// watchful knows what is registered.
type watchful struct {
	verbs.Provider
	mu   sync.Mutex
	live map[uint64]bool
}

func (w *watchful) sim() *sim.Provider { return w.Provider.(*sim.Provider) }

func (w *watchful) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	region, err := w.Provider.Register(r, a)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.live == nil {
			w.live = make(map[uint64]bool)
		}
		w.live[region.Handle] = true
	}
	return region, err
}

func (w *watchful) Deregister(region verbs.Region) error {
	w.mu.Lock()
	delete(w.live, region.Handle)
	w.mu.Unlock()
	return w.Provider.Deregister(region)
}

func (w *watchful) registered(region verbs.Region) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.live[region.Handle]
}

func TestManagersStartAndStopManyTimes(t *testing.T) {
	p := sim.New(sim.Options{})
	for i := range 300 {
		o := Options{Provider: p, IdlePolicy: "auto"}
		if i%2 == 0 {
			o.IdlePolicy = IdleIgnore
		}
		m, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		th, err := m.Thread()
		if err != nil {
			t.Fatal(err)
		}
		var u Use
		if err := th.Acquire(&u, region(i), access, 0, nil); err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 {
			th.Release(&u)
		}
		if i%5 > 0 {
			th.Close()
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
		if i%3 == 0 {
			th.Release(&u) // after the end of the Manager
		}
	}
	if u := p.Usage(); u.Regions != 0 {
		t.Errorf("%+v is left", u)
	}
}
