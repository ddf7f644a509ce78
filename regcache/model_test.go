package regcache

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pinwheel/mem"
	"pinwheel/verbs"
	"pinwheel/verbs/sim"
)

// modelPages is the size of the address space of the state machine.
const modelPages = 24

// modelRegion is a known region, or a registration that lingers.
type modelRegion struct {
	id       mem.RegionID
	from, to int // pages
	access   verbs.Access
	on, once bool
	refs     int
	used     int
	handle   uint64 // of the registration, once somebody has acquired it
}

func (g *modelRegion) pages() int           { return g.to - g.from }
func (g *modelRegion) covers(f, t int) bool { return g.from <= f && t <= g.to }
func (g *modelRegion) overlap(f, t int) int { return min(g.to, t) - max(g.from, f) }
func (g *modelRegion) span() mem.Range      { return span(uint64(g.from), uint64(g.pages())) }
func (g *modelRegion) holds(o *modelRegion) bool {
	return g.covers(o.from, o.to) && g.access.Includes(o.access)
}

// model is the naive cache: lists, and no thought of speed.
type model struct {
	known, lingering []*modelRegion
	lastID           mem.RegionID
	clock            int
	exact            bool // the clock advances with every Acquire
	limit            int  // pages
	kernelLimit      bool // the provider enforces it, not the cache
	seen, unmapped   [modelPages]bool
}

func (m *model) pinned() (n int) {
	for _, g := range append(slices.Clone(m.known), m.lingering...) {
		if g.on {
			n += g.pages()
		}
	}
	return n
}

// evict releases the idle region that was used least recently.
func (m *model) evict() bool {
	var victim *modelRegion
	for _, g := range m.known {
		if g.on && g.refs == 0 && (victim == nil || cmp.Or(cmp.Compare(g.used, victim.used), cmp.Compare(g.id, victim.id)) < 0) {
			victim = g
		}
	}
	if victim != nil {
		victim.on, victim.handle = false, 0
	}
	return victim != nil
}

// detach takes the registration off a region that changes or goes.
func (m *model) detach(g *modelRegion) {
	if g.on && g.refs > 0 {
		old := *g
		old.id = 0
		m.lingering = append(m.lingering, &old)
	}
	g.on, g.refs, g.once, g.handle = false, 0, false, 0
}

func (m *model) forget(g *modelRegion) {
	m.detach(g)
	m.known = slices.DeleteFunc(m.known, func(o *modelRegion) bool { return o == g })
}

// home is the rule in doc.go.
func (m *model) home(f, t int, a verbs.Access) *modelRegion {
	n := t - f
	var best *modelRegion
	for _, g := range m.known {
		if g.covers(f, t) && g.pages() <= 2*n && g.access.Includes(a) &&
			(best == nil || cmp.Or(cmp.Compare(g.pages(), best.pages()), cmp.Compare(g.from, best.from)) < 0) {
			best = g
		}
	}
	if best != nil {
		return best
	}
	fits := func(g *modelRegion) (verbs.Access, bool) {
		if (g.access^a)&verbs.AccessRelaxedOrdering != 0 {
			return 0, false
		}
		union := max(g.to, t) - min(g.from, f)
		rights, ok := g.access, g.access == a
		if g.from == f && g.to == t {
			rights, ok = g.access|a, true
		} else if !ok && f <= g.from && g.to <= t && a.Includes(g.access) {
			rights, ok = a, true
		}
		return rights, ok && 2*g.overlap(f, t) > max(g.pages(), n) && union <= 2*n
	}
	for _, g := range m.known {
		if _, ok := fits(g); ok && (best == nil || cmp.Or(-cmp.Compare(g.overlap(f, t), best.overlap(f, t)), cmp.Compare(g.id, best.id)) < 0) {
			best = g
		}
	}
	if best == nil {
		m.lastID++
		best = &modelRegion{id: m.lastID, from: f, to: t, access: a}
		m.known = append(m.known, best)
		return best
	}
	rights, _ := fits(best)
	grown := &modelRegion{from: min(best.from, f), to: max(best.to, t), access: rights}
	for _, g := range slices.Clone(m.known) {
		if _, ok := fits(g); ok && g != best && grown.holds(g) {
			m.forget(g)
		}
	}
	m.detach(best)
	best.from, best.to, best.access = grown.from, grown.to, rights
	return best
}

// register makes room and registers, as the cache or the kernel would.
func (m *model) register(g *modelRegion) error {
	m.clock++
	bad := slices.Contains(m.unmapped[g.from:g.to], true)
	if m.kernelLimit && bad {
		return verbs.ErrNotMapped // seen before the limit is
	}
	if !m.kernelLimit && g.pages() > m.limit {
		return verbs.ErrPinnedMemory // no use evicting
	}
	for m.pinned()+g.pages() > m.limit {
		if !m.evict() {
			return verbs.ErrPinnedMemory
		}
	}
	if bad {
		return verbs.ErrNotMapped
	}
	g.on, g.once, g.used = true, true, m.clock
	for i := g.from; i < g.to; i++ {
		m.seen[i] = true
	}
	return nil
}

// acquire returns who serves, whose home it is, and how.
func (m *model) acquire(f, t int, a verbs.Access) (by, home *modelRegion, o Outcome, err error) {
	if m.exact {
		m.clock++
	}
	for {
		home = m.home(f, t, a)
		if home.on {
			return home, home, Hit, nil
		}
		for _, g := range m.known {
			if g.on && g.covers(f, t) && g.access.Includes(a) {
				return g, home, Hit, nil // any will do: the test finds out which
			}
		}
		if o = First; !slices.Contains(m.seen[f:t], false) {
			o = Late
		}
		switch err = m.register(home); {
		case err == nil:
			return home, home, o, nil
		case err == verbs.ErrNotMapped && (home.from != f || home.to != t):
			m.detach(home)
			home.from, home.to, home.access = f, t, a
			continue
		case err == verbs.ErrNotMapped || !home.once:
			m.forget(home)
		}
		return nil, nil, o, err
	}
}

// machine drives a cache and the model side by side.
type machine struct {
	c    *Cache
	f    *Front
	p    *sim.Provider
	m    *model
	refs []modelRef
}

type modelRef struct {
	ref    Ref
	handle uint64 // of the registration that serves it
}

func (x *machine) request(t *rapid.T) (r mem.Range, from, to int, a verbs.Access) {
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

func (x *machine) Acquire(t *rapid.T) {
	r, from, to, a := x.request(t)
	ref, outcome, err := x.f.Acquire(r, a)
	if x.m.exact {
		t.Fatal("a confined cache is used through the cache")
	}
	x.acquired(t, r, from, to, a, ref, outcome, err)
}

func (x *machine) acquired(t *rapid.T, r mem.Range, from, to int, a verbs.Access, ref Ref, outcome Outcome, err error) {
	by, home, want, wantErr := x.m.acquire(from, to, a)
	if !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) || err == nil && outcome != want {
		t.Fatalf("acquire %d-%d: %v, %v; want %v, %v", from, to, outcome, err, want, wantErr)
	}
	if err != nil {
		return
	}
	if ref.ID() != home.id {
		t.Fatalf("acquire %d-%d: home %d, want %d", from, to, ref.ID(), home.id)
	}
	g := ref.Region()
	if by != home {
		for _, o := range x.m.known { // which of those that cover it?
			if o.on && o.span() == g.Range && o.access == g.Access {
				by = o
			}
		}
	}
	if g.Range != by.span() || g.Access != by.access || !g.Range.Contains(r) {
		t.Fatalf("acquire %d-%d: served by %+v, want %+v", from, to, g, by)
	}
	by.refs++
	by.used, by.handle = x.m.clock, g.Handle
	x.refs = append(x.refs, modelRef{ref, g.Handle})
}

func (x *machine) Release(t *rapid.T) {
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

func (x *machine) HelperDeregister(t *rapid.T) {
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

func (x *machine) HelperRegister(t *rapid.T) {
	g := x.any(t)
	var want error
	if !g.on {
		want = x.m.register(g)
	}
	if err := x.c.Register(g.id); !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Fatalf("register: %v, want %v", err, want)
	}
}

func (x *machine) any(t *rapid.T) *modelRegion {
	if len(x.m.known) == 0 {
		t.Skip("nothing known")
	}
	return x.m.known[rapid.IntRange(0, len(x.m.known)-1).Draw(t, "region")]
}

func (x *machine) IsRegistered(t *rapid.T) {
	r, from, to, a := x.request(t)
	ref, ok := x.f.IsRegistered(r, a)
	want := slices.ContainsFunc(x.m.known, func(g *modelRegion) bool { return g.on && g.covers(from, to) && g.access.Includes(a) })
	if ok != want {
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

func (x *machine) Unmap(t *rapid.T) {
	from := rapid.IntRange(0, modelPages-1).Draw(t, "from")
	to := min(modelPages, from+rapid.IntRange(1, 4).Draw(t, "pages"))
	for i := from; i < to; i++ {
		x.m.unmapped[i], x.m.seen[i] = true, false
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

func (x *machine) Map(*rapid.T) { x.m.unmapped = [modelPages]bool{} }

func (x *machine) Clean(t *rapid.T) {
	want := 0
	for x.m.evict() {
		want++
	}
	if n, err := x.c.Clean(); err != nil || n != want {
		t.Fatalf("clean: %d, %v; want %d", n, err, want)
	}
}

func (x *machine) SetLimits(t *rapid.T) {
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
func (x *machine) Check(t *rapid.T) {
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
		k := x.c.byID[g.id]
		if k == nil || k.rng != g.span() || (k.state == registered) != g.on || k.access != g.access {
			t.Fatalf("region %d is %+v; model %+v", g.id, k, g)
		}
		if g.on && int(x.c.tab.references(k.slot)) != g.refs {
			t.Fatalf("region %d has %d references; model %d", g.id, x.c.tab.references(k.slot), g.refs)
		}
	}
}

func testAgainstModel(t *testing.T, confined, kernelLimit bool) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{exact: confined, kernelLimit: kernelLimit, limit: 3 * modelPages}
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
		c, err := New(p, Options{Confined: confined, MaxBytes: mem.Unlimited})
		if err != nil {
			t.Fatal(err)
		}
		if !kernelLimit {
			m.limit = 3 * modelPages
			c.SetLimits(Limits{int64(m.limit) * int64(mem.PageSize), mem.Unlimited})
		}
		x := &machine{c: c, p: p, m: m}
		if x.f, err = c.Thread(); err != nil {
			t.Fatal(err)
		}
		actions := rapid.StateMachineActions(x)
		if confined {
			x.f = c.common
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

func TestCacheAgreesWithNaiveModelUnderItsOwnLimit(t *testing.T)    { testAgainstModel(t, true, false) }
func TestCacheAgreesWithNaiveModelUnderKernelLimit(t *testing.T)    { testAgainstModel(t, true, true) }
func TestFrontAgreesWithNaiveModelUnderItsOwnLimit(t *testing.T)    { testAgainstModel(t, false, false) }
func TestFrontAgreesWithNaiveModelUnderTheKernelLimit(t *testing.T) { testAgainstModel(t, false, true) }
