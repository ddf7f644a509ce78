package regcache

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// The history of one region under concurrency is linearizable: every call
// behaves as if it happened at one moment. A use has one more moment, at which
// it begins: from then on the helper's calls may find the region in use or
// being registered, though the use is not served before it ends.

type linearOp uint8

const (
	opBegin linearOp = iota // of an opAcquire or opIsRegistered
	opAcquire
	opRelease
	opIsRegistered
	opDeregister
	opRegister
	opClean
)

type linearInput struct {
	op linearOp
}

type linearOutput struct {
	ok      bool // acquired, was registered, or done
	by      bool // registered by this call
	cleaned int
}

// linearState is the region: registered or not, its references, and the uses
// that have begun and are not served.
type linearState struct {
	on    bool
	refs  int
	begun int
}

var linearModel = porcupine.Model{
	Init: func() any { return linearState{} },
	Step: func(s, in, out any) (bool, any) {
		st, o := s.(linearState), out.(linearOutput)
		idle := st.refs == 0 && st.begun == 0
		switch in.(linearInput).op {
		case opBegin:
			st.begun++
			return true, st
		case opAcquire:
			// Waited may be a registration that another call began.
			legal := o.ok && st.on != o.by && st.begun > 0
			return legal, linearState{true, st.refs + 1, st.begun - 1}
		case opIsRegistered:
			legal := o.ok == st.on && st.begun > 0
			st.begun--
			if o.ok {
				st.refs++
			}
			return legal, st
		case opRelease:
			st.refs--
			return st.refs >= 0, st
		case opDeregister:
			if !o.ok {
				return !idle, st
			}
			st.on = false
			return st.refs == 0, st
		case opRegister:
			if !o.by {
				return st.on || st.begun > 0, st // it is, or is being, registered
			}
			legal := !st.on
			st.on = true
			return legal, st
		case opClean:
			if o.cleaned == 0 {
				return !st.on || !idle, st
			}
			legal := st.on && st.refs == 0 && o.cleaned == 1
			st.on = false
			return legal, st
		}
		return false, st
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%d -> %+v", in.(linearInput).op, out) },
}

func TestHistoriesOfOneRegionAreLinearizable(t *testing.T) {
	testwait.Bound(t)
	rounds := 30
	if testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		// Registrations and releases last, so that calls overlap.
		p := sim.New(sim.Options{Wait: true,
			Costs: verbs.Costs{Register: verbs.Cost{FixedNs: 20e3}, Deregister: verbs.Cost{FixedNs: 10e3}}})
		c, err := New(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var history []porcupine.Operation
		from := time.Now()
		call := func(client int, op linearOp, f func() linearOutput) {
			start := time.Since(from)
			out := f()
			end := time.Since(from)
			mu.Lock()
			defer mu.Unlock()
			ops := []linearOp{op}
			if op == opAcquire || op == opIsRegistered {
				ops = []linearOp{opBegin, op}
			}
			for _, op := range ops {
				history = append(history,
					porcupine.Operation{ClientId: client, Input: linearInput{op}, Call: int64(start), Output: out, Return: int64(end)})
			}
		}
		// Known from the start, so that the helper's calls can name it.
		ref, _, err := c.Acquire(span(0, 16), both)
		if err != nil {
			t.Fatal(err)
		}
		id := ref.ID()
		c.Release(ref)
		if err := c.Deregister(id); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for client := range 3 {
			wg.Go(withLocal(t, c, func(f *Local) {
				rng := rand.New(rand.NewPCG(uint64(round), uint64(client)))
				var held []Ref
				for range 25 {
					switch k := rng.IntN(4); {
					case k == 0 && len(held) > 0:
						r := held[0]
						held = held[1:]
						call(client, opRelease, func() linearOutput { f.Release(r); return linearOutput{ok: true} })
					case k == 1:
						call(client, opIsRegistered, func() linearOutput {
							r, ok := f.IsRegistered(span(0, 16), both)
							if ok {
								held = append(held, r)
							}
							return linearOutput{ok: ok}
						})
					default:
						call(client, opAcquire, func() linearOutput {
							r, outcome, err := f.Acquire(span(0, 16), both)
							if err != nil {
								t.Error(err)
								return linearOutput{}
							}
							held = append(held, r)
							return linearOutput{ok: true, by: outcome == Late}
						})
					}
				}
				for _, r := range held {
					call(client, opRelease, func() linearOutput { f.Release(r); return linearOutput{ok: true} })
				}
			}))
		}
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(round), 99))
			for range 30 {
				switch rng.IntN(3) {
				case 0:
					call(3, opRegister, func() linearOutput {
						did, err := c.TryRegister(id)
						if err != nil {
							t.Error(err)
						}
						return linearOutput{ok: err == nil, by: did}
					})
				case 1:
					call(3, opDeregister, func() linearOutput {
						err := c.Deregister(id)
						if err != nil && !errors.Is(err, ErrInUse) {
							t.Error(err)
						}
						return linearOutput{ok: err == nil}
					})
				default:
					call(3, opClean, func() linearOutput {
						n, err := c.Clean()
						if err != nil {
							t.Error(err)
						}
						return linearOutput{ok: true, cleaned: n}
					})
				}
			}
		})
		wg.Wait()
		if res := porcupine.CheckOperationsTimeout(linearModel, history, 20*time.Second); res != porcupine.Ok {
			for _, op := range history {
				t.Logf("%d: %d-%d op %d %+v", op.ClientId, op.Call, op.Return, op.Input.(linearInput).op, op.Output)
			}
			t.Fatalf("round %d: the history is %v", round, res)
		}
		verifyAndClose(t, c)
		if u := p.Usage(); u.Regions != 0 {
			t.Fatalf("still registered: %+v", u)
		}
	}
}

func TestSecondRequestWaitsForTheFirstOneOnlyAndOthersHit(t *testing.T) {
	testwait.Bound(t)
	slow := span(1000, 16)
	entered, leave := make(chan struct{}), make(chan struct{})
	p := sim.New(sim.Options{Fail: func(op sim.Op, r mem.Range) error {
		if op == sim.OpRegister && r == slow {
			close(entered)
			<-leave
		}
		return nil
	}})
	c, err := New(p, Options{})
	if err != nil {
		t.Fatal(err)
	}
	use := func(r mem.Range, want Outcome) {
		t.Helper()
		ref, got, err := c.Acquire(r, both)
		if err != nil || got != want {
			t.Errorf("%v: %v, %v; want %v", r, got, err, want)
			return
		}
		c.Release(ref)
	}
	use(span(0, 16), First)
	var wg sync.WaitGroup
	wg.Go(func() { use(slow, First) })
	<-entered
	second := make(chan struct{})
	wg.Go(func() {
		close(second)
		use(slow, Waited)
	})
	<-second
	use(span(0, 16), Hit)      // a hit goes on
	use(span(2000, 16), First) // so does another registration
	if err := c.Deregister(2); !errors.Is(err, ErrInUse) {
		t.Errorf("deregister while registering: %v", err)
	}
	// The second request must be waiting: it can't be served before leave.
	for {
		c.mu.Lock()
		waiting := c.byID.get(2).done != nil
		c.mu.Unlock()
		if waiting {
			break
		}
		time.Sleep(time.Millisecond)
	}
	close(leave)
	wg.Wait()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
