package regcache

import (
	"errors"
	"slices"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// refusal says that memory can't be registered, or not be kept registered. The next uses of it then need not find
// that out again. It is watched, as regions are, and goes when its mapping changes.
type refusal struct {
	rng    mem.Range
	access verbs.Access
	token  uint64 // of its watch
	err    error  // of the provider; nil: the memory can be registered, but not kept
	uses   uint   // since then
}

const (
	// maxRefusals bounds how many are remembered; the oldest goes first.
	maxRefusals = 256
	// refusedUses is how many uses in a row a refusal holds for. No watcher notices mprotect(2), so now and then another
	// attempt is made.
	refusedUses = 64
)

// refuse forgets a region that can't be registered, or not be kept, and remembers why if its mapping is watched. This
// replaces what an earlier attempt has found out.
func (c *Cache) refuse(g *region, err error) {
	if g.known() && g.watched {
		gives := c.refusalOf(g.rng, g.access)
		if gives == nil && len(c.refusals) == maxRefusals {
			gives = c.refusals[0]
		}
		c.forgiveIf(func(f *refusal) bool { return f == gives })
		c.refusals = append(c.refusals, &refusal{rng: g.rng, access: g.access, token: g.token, err: err})
		g.watched, g.verify, g.accepted = false, false, false // the refusal has the watch
	}
	c.forget(g)
}

// isLasting reports whether a provider that refused memory would refuse it again, as long as it is mapped as it is.
func isLasting(err error) bool {
	return (errors.Is(err, verbs.ErrNotMapped) || errors.Is(err, verbs.ErrUnsupported)) && !errors.Is(err, ErrFault)
}

// refusalOf returns the refusal of the pages p, nil if there is none. Whether memory can be kept is no question of
// rights.
func (c *Cache) refusalOf(p mem.Range, a verbs.Access) *refusal {
	for _, f := range c.refusals {
		if f.rng == p && (f.err == nil || f.access == a) {
			return f
		}
	}
	return nil
}

// refuses returns the refusal that a use of the pages p meets, nil if it is to try.
func (c *Cache) refuses(p mem.Range, a verbs.Access) *refusal {
	f := c.refusalOf(p, a)
	if f == nil || c.covering(p, a) != nil {
		return nil
	}
	if f.uses++; f.uses%refusedUses == 0 {
		return nil
	}
	return f
}

// answerUnlocking serves a request for memory that is refused.
func (c *Cache) answerUnlocking(q *request, f *refusal) (Ref, error) {
	if f.err == nil {
		return c.registerOnceUnlocking(q)
	}
	q.outcome = c.firstOrLate(q.pages, q.access)
	return Ref{}, f.err
}

// forgive forgets the refusals that a registration of g disproves.
func (c *Cache) forgive(g *region) {
	c.forgiveIf(func(f *refusal) bool { return f.rng == g.rng && (f.err == nil || g.access.Includes(f.access)) })
}

// forgiveIn forgets the refusals of memory that shares a page with r.
func (c *Cache) forgiveIn(r mem.Range) {
	c.forgiveIf(func(f *refusal) bool { return f.rng.Overlaps(r) })
}

// forgiveIf forgets refusals. The next reclaim ends their watches.
func (c *Cache) forgiveIf(is func(*refusal) bool) {
	c.refusals = slices.DeleteFunc(c.refusals, func(f *refusal) bool {
		if !is(f) {
			return false
		}
		c.endedWatches = append(c.endedWatches, f.token)
		return true
	})
}
