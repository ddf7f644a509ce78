package regcache

import (
	"cmp"
	"slices"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// modelPages is the size of the address space of the state machine.
const modelPages = 24

// modelRegion is a known region, or a registration that lingers.
type modelRegion struct {
	id                mem.RegionID
	from, to          int // pages
	access            verbs.Access
	on, wasRegistered bool
	mayBeClosed       bool // the helper wanted to deregister it
	refs              int
	used              int
	handle            uint64 // of the registration, wasRegistered somebody has acquired it
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
	anyCovering      bool // as in Options
	exact            bool // the clock advances with every Acquire
	limit            int  // pages
	kernelLimit      bool // the provider enforces it, not the cache
	unmapped         [modelPages]bool
	seen             [modelPages][]verbs.Access // with what each page was registered
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
		if g.on && g.refs == 0 &&
			(victim == nil || cmp.Or(cmp.Compare(g.used, victim.used), cmp.Compare(g.id, victim.id)) < 0) {
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
	g.on, g.refs, g.wasRegistered, g.handle = false, 0, false, 0
}

func (m *model) forget(g *modelRegion) {
	m.detach(g)
	m.known = slices.DeleteFunc(m.known, func(o *modelRegion) bool { return o == g })
}

// bestFit is the first rule of doc.go: nil if no known region fits.
func (m *model) bestFit(f, t int, a verbs.Access) (best *modelRegion) {
	for _, g := range m.known {
		if g.covers(f, t) && g.pages() <= 2*(t-f) && g.access.Includes(a) &&
			(best == nil || cmp.Or(cmp.Compare(g.pages(), best.pages()), cmp.Compare(g.from, best.from)) < 0) {
			best = g
		}
	}
	return best
}

// mayGrow is the second rule, and returns the rights that the region then has.
func (m *model) mayGrow(g *modelRegion, f, t int, a verbs.Access) (verbs.Access, bool) {
	if (g.access^a)&verbs.AccessRelaxedOrdering != 0 {
		return 0, false
	}
	n, union := t-f, max(g.to, t)-min(g.from, f)
	rights, ok := g.access, g.access == a
	if g.from == f && g.to == t {
		rights, ok = g.access|a, true
	} else if !ok && f <= g.from && g.to <= t && a.Includes(g.access) {
		rights, ok = a, true
	}
	return rights, ok && 2*g.overlap(f, t) > max(g.pages(), n) && union <= min(2*n, m.limit)
}

// growable returns the best region to grow, or nil.
func (m *model) growable(f, t int, a verbs.Access) (best *modelRegion) {
	for _, g := range m.known {
		if _, ok := m.mayGrow(g, f, t, a); ok &&
			(best == nil || cmp.Or(-cmp.Compare(g.overlap(f, t), best.overlap(f, t)), cmp.Compare(g.id, best.id)) < 0) {
			best = g
		}
	}
	return best
}

func (m *model) add(f, t int, a verbs.Access) *modelRegion {
	m.lastID++
	g := &modelRegion{id: m.lastID, from: f, to: t, access: a}
	m.known = append(m.known, g)
	return g
}

// regionFor is all rules of doc.go.
func (m *model) regionFor(f, t int, a verbs.Access) *modelRegion {
	if g := m.bestFit(f, t, a); g != nil {
		return g
	}
	best := m.growable(f, t, a)
	if best == nil {
		return m.add(f, t, a)
	}
	rights, _ := m.mayGrow(best, f, t, a)
	grown := &modelRegion{from: min(best.from, f), to: max(best.to, t), access: rights}
	for _, g := range slices.Clone(m.known) {
		if _, ok := m.mayGrow(g, f, t, a); ok && g != best && grown.holds(g) {
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
	if g.pages() > m.limit {
		return verbs.ErrPinnedMemory // no use evicting
	}
	bad := slices.Contains(m.unmapped[g.from:g.to], true)
	if m.kernelLimit && bad {
		return verbs.ErrNotMapped // seen before the limit is
	}
	for m.pinned()+g.pages() > m.limit {
		if !m.evict() {
			return verbs.ErrPinnedMemory
		}
	}
	if bad {
		return verbs.ErrNotMapped
	}
	g.on, g.wasRegistered, g.used = true, true, m.clock
	for i := g.from; i < g.to; i++ {
		m.seen[i] = append(m.seen[i], g.access)
	}
	return nil
}

// covering returns one of the registered regions that cover a request. Any will
// do: the test finds out which it was.
func (m *model) serving(f, t int, a verbs.Access) *modelRegion {
	for _, g := range m.known {
		if g.on && g.covers(f, t) && g.access.Includes(a) {
			return g
		}
	}
	return nil
}

// acquire returns who serves, whose best fit it is, and how.
func (m *model) acquire(f, t int, a verbs.Access) (by, fit *modelRegion, o Outcome, err error) {
	if m.exact {
		m.clock++
	}
	for {
		if g := m.serving(f, t, a); m.anyCovering && g != nil {
			return g, nil, Hit, nil
		}
		fit = m.regionFor(f, t, a)
		if fit.on {
			return fit, fit, Hit, nil
		}
		if g := m.serving(f, t, a); g != nil {
			return g, fit, Hit, nil
		}
		o = Late
		for _, with := range m.seen[f:t] {
			if !slices.ContainsFunc(with, func(b verbs.Access) bool { return b.Includes(a) }) {
				o = First
			}
		}
		switch err = m.register(fit); {
		case err == nil:
			return fit, fit, o, nil
		case err == verbs.ErrNotMapped && fit.access != a,
			(err == verbs.ErrNotMapped || fit.pages() > m.limit) && (fit.from != f || fit.to != t):
			m.detach(fit)
			fit.from, fit.to, fit.access = f, t, a
			continue
		case err == verbs.ErrNotMapped || !fit.wasRegistered:
			m.forget(fit)
		}
		return nil, nil, o, err
	}
}
