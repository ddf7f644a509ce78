package regcache

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/internal/testwait"
	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// stateMachine drives a cache and the model side by side.
type stateMachine struct {
	c    *Cache
	f    *Local
	p    *sim.Provider
	m    *model
	refs []modelRef
}

type modelRef struct {
	ref    Ref
	handle uint64 // of the registration that serves it
}

func (x *stateMachine) request(t *rapid.T) (r mem.Range, from, to int, a verbs.Access) {
	from = rapid.IntRange(0, modelPages-1).Draw(t, "from")
	to = rapid.IntRange(from+1, modelPages).Draw(t, "to")
	r = span(uint64(from), uint64(to-from))
	// The same pages, but not whole.
	page := mem.Addr(mem.PageSize)
	r.Start += rapid.SampledFrom([]mem.Addr{0, 0, 1, page - 1}).Draw(t, "skip")
	r.End -= rapid.SampledFrom([]mem.Addr{0, 0, 1, page - 1}).Draw(t, "short")
	if r.End <= r.Start {
		r = span(uint64(from), uint64(to-from))
	}
	a = rapid.SampledFrom([]verbs.Access{read, write, both, both, both | verbs.AccessRelaxedOrdering}).Draw(t, "rights")
	return r, from, to, a
}

func (x *stateMachine) Acquire(t *rapid.T) {
	r, from, to, a := x.request(t)
	ref, outcome, err := x.f.Acquire(r, a)
	if x.m.exact {
		t.Fatal("a confined cache is used through the cache")
	}
	x.acquired(t, r, from, to, a, ref, outcome, err)
}

func (x *stateMachine) acquired(t *rapid.T, r mem.Range, from, to int, a verbs.Access, ref Ref,
	outcome Outcome, err error) {
	by, fit, want, wantErr := x.m.acquire(from, to, a)
	if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || err == nil && outcome != want {
		t.Fatalf("acquire %d-%d: %v, %v; want %v, %v", from, to, outcome, err, want, wantErr)
	}
	if err != nil {
		return
	}
	g := ref.Region()
	if by != fit || by.mayBeClosed {
		for _, o := range x.m.known { // which of those that cover it?
			if o.on && o.span() == g.Range && o.access == g.Access {
				by = o
			}
		}
	}
	if fit == nil {
		fit = by
	}
	if ref.ID() != fit.id {
		t.Fatalf("acquire %d-%d: region %d, want %d", from, to, ref.ID(), fit.id)
	}
	if g.Range != by.span() || g.Access != by.access || !g.Range.Contains(r) {
		t.Fatalf("acquire %d-%d: served by %+v, want %+v", from, to, g, by)
	}
	by.refs++
	by.mayBeClosed = false
	by.used, by.handle = x.m.clock, g.Handle
	x.refs = append(x.refs, modelRef{ref, g.Handle})
}

func (x *stateMachine) Release(t *rapid.T) {
	if len(x.refs) == 0 {
		t.Skip("nothing to release")
	}
	i := rapid.IntRange(0, len(x.refs)-1).Draw(t, "ref")
	r := x.refs[i]
	x.refs = slices.Delete(x.refs, i, i+1)
	x.f.Release(r.ref)
	for _, g := range append(slices.Clone(x.m.lingering), x.m.known...) {
		if g.handle == r.handle {
			g.refs--
			g.used = x.m.clock
		}
	}
	x.m.lingering = slices.DeleteFunc(x.m.lingering, func(g *modelRegion) bool { return g.refs == 0 })
}

func (x *stateMachine) HelperDeregister(t *rapid.T) {
	g := x.any(t)
	err := x.c.Deregister(g.id)
	if g.on && g.refs > 0 {
		if !errors.Is(err, ErrInUse) {
			t.Fatalf("deregister in use: %v", err)
		}
		return
	}
	if g.on, g.handle = false, 0; err != nil {
		t.Fatal(err)
	}
}

// HelperClosesIdle changes nothing that a user of the cache can see, except that another region that covers a
// request may serve it.
func (x *stateMachine) HelperClosesIdle(t *rapid.T) {
	a, b := x.any(t), x.any(t)
	a.mayBeClosed, b.mayBeClosed = a.refs == 0, b.refs == 0
	x.c.CloseIdle([]mem.RegionID{a.id, b.id})
}

func (x *stateMachine) HelperRegister(t *rapid.T) {
	g := x.any(t)
	var want error
	if !g.on {
		want = x.m.register(g)
	}
	if err := x.c.Register(g.id); !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Fatalf("register: %v, want %v", err, want)
	}
}

// Identify makes a region known that was registered past the cache, and registers nothing.
func (x *stateMachine) Identify(t *rapid.T) {
	r, from, to, a := x.request(t)
	id, known := x.c.Identify(r, a)
	want := x.m.bestFit(from, to, a)
	if want == nil && x.m.growable(from, to, a) == nil {
		want = x.m.add(from, to, a)
	}
	if known != (want != nil) || known && id != want.id {
		t.Fatalf("identify %d-%d: %d, %v; want %+v", from, to, id, known, want)
	}
}

func (x *stateMachine) any(t *rapid.T) *modelRegion {
	if len(x.m.known) == 0 {
		t.Skip("nothing known")
	}
	return x.m.known[rapid.IntRange(0, len(x.m.known)-1).Draw(t, "region")]
}

func (x *stateMachine) IsRegistered(t *rapid.T) {
	r, from, to, a := x.request(t)
	ref, ok := x.f.IsRegistered(r, a)
	if want := x.m.serving(from, to, a) != nil; ok != want {
		t.Fatalf("is %d-%d registered: %v, want %v", from, to, ok, want)
	}
	if ok {
		x.f.Release(ref)
		for _, g := range x.m.known {
			if held := ref.Region(); g.on && g.span() == held.Range && g.access == held.Access {
				g.used = x.m.clock
			}
		}
	}
}

func (x *stateMachine) Unmap(t *rapid.T) {
	from := rapid.IntRange(0, modelPages-1).Draw(t, "from")
	to := min(modelPages, from+rapid.IntRange(1, 4).Draw(t, "pages"))
	for i := from; i < to; i++ {
		x.m.unmapped[i], x.m.seen[i] = true, nil
	}
	for _, g := range slices.Clone(x.m.known) {
		if g.overlap(from, to) > 0 {
			x.m.forget(g)
		}
	}
	if err := x.c.Invalidate(span(uint64(from), uint64(to-from))); err != nil {
		t.Fatal(err)
	}
}

func (x *stateMachine) Map(*rapid.T) { x.m.unmapped = [modelPages]bool{} }

func (x *stateMachine) Clean(t *rapid.T) {
	want := 0
	for x.m.evict() {
		want++
	}
	if n, err := x.c.Clean(); err != nil || n != want {
		t.Fatalf("clean: %d, %v; want %d", n, err, want)
	}
}

func (x *stateMachine) SetLimits(t *rapid.T) {
	if x.m.kernelLimit {
		t.Skip("the kernel's limit is fixed")
	}
	x.m.limit = rapid.IntRange(1, 3*modelPages).Draw(t, "pages")
	for x.m.pinned() > x.m.limit && x.m.evict() {
	}
	if err := x.c.SetLimits(Limits{int64(x.m.limit) * int64(mem.PageSize), mem.Unlimited}); err != nil {
		t.Fatal(err)
	}
}

// Check compares the books after every step.
func (x *stateMachine) Check(t *rapid.T) {
	if err := x.c.Verify(); err != nil {
		t.Fatal(err)
	}
	s, u := x.c.Stats(), x.p.Usage()
	if want := int64(x.m.pinned()) * int64(mem.PageSize); s.Pinned.Bytes != want || u.PinnedBytes != want {
		t.Fatalf("pinned: cache %d, provider %d, model %d", s.Pinned.Bytes, u.PinnedBytes, want)
	}
	if s.Known != len(x.m.known) || s.Lingering != len(x.m.lingering) {
		t.Fatalf("known %d, lingering %d; model %d, %d", s.Known, s.Lingering, len(x.m.known), len(x.m.lingering))
	}
	for _, g := range x.m.known {
		k := x.c.byID.get(g.id)
		if k == nil || k.rng != g.span() || (k.state == registered) != g.on || k.access != g.access {
			t.Fatalf("region %d is %+v; model %+v", g.id, k, g)
		}
		if g.on && int(x.c.tab.references(k.slot)) != g.refs {
			t.Fatalf("region %d has %d references; model %d", g.id, x.c.tab.references(k.slot), g.refs)
		}
	}
}

func testAgainstModel(t *testing.T, confined, kernelLimit bool) {
	testwait.SkipUnderRace(t, "it has one thread")
	rapid.Check(t, func(t *rapid.T) {
		m := &model{anyCovering: rapid.Bool().Draw(t, "any covering"), exact: confined,
			kernelLimit: kernelLimit, limit: 3 * modelPages}
		limits := verbs.Limits{}
		if kernelLimit {
			m.limit = rapid.IntRange(1, 2*modelPages).Draw(t, "kernel limit")
			limits.MaxPinnedBytes = int64(m.limit) * int64(mem.PageSize)
		}
		p := sim.New(sim.Options{Limits: limits, Fail: func(op sim.Op, r mem.Range) error {
			from, to := int(r.Start-base)/int(mem.PageSize), int(r.End-base)/int(mem.PageSize)
			if op == sim.OpRegister && slices.Contains(m.unmapped[from:to], true) {
				return verbs.ErrNotMapped
			}
			return nil
		}})
		c, err := New(p, Options{Confined: confined, AnyCovering: m.anyCovering, MaxBytes: mem.Unlimited})
		if err != nil {
			t.Fatal(err)
		}
		if !kernelLimit {
			m.limit = 3 * modelPages
			c.SetLimits(Limits{int64(m.limit) * int64(mem.PageSize), mem.Unlimited})
		}
		x := &stateMachine{c: c, p: p, m: m}
		if x.f, err = c.Thread(); err != nil {
			t.Fatal(err)
		}
		actions := rapid.StateMachineActions(x)
		if confined {
			x.f = c.shared
			actions["Acquire"] = func(t *rapid.T) {
				r, from, to, a := x.request(t)
				ref, outcome, err := c.Acquire(r, a)
				x.acquired(t, r, from, to, a, ref, outcome, err)
			}
		}
		t.Repeat(actions)
		for _, r := range x.refs {
			c.Release(r.ref)
		}
		if err := c.Close(); err != nil || p.Usage() != (verbs.Usage{}) {
			t.Fatal(fmt.Errorf("after Close: %v, %+v", err, p.Usage()))
		}
	})
}

func TestCacheAgreesWithNaiveModelUnderItsOwnLimit(t *testing.T)     { testAgainstModel(t, true, false) }
func TestCacheAgreesWithNaiveModelUnderTheKernelsLimit(t *testing.T) { testAgainstModel(t, true, true) }
func TestLocalAgreesWithNaiveModelUnderItsOwnLimit(t *testing.T)     { testAgainstModel(t, false, false) }
func TestLocalAgreesWithNaiveModelUnderTheKernelsLimit(t *testing.T) {
	testAgainstModel(t, false, true)
}
