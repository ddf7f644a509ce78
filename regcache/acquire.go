package regcache

import (
	"errors"
	"fmt"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// IsRegistered returns a counted reference if all of r is registered with
// the rights a, and registers nothing if not.
func (l *Local) IsRegistered(r mem.Range, a verbs.Access) (Ref, bool) {
	p, err := pages(r)
	if err != nil {
		return Ref{}, false
	}
	want := packAccess(a)
	if ref, ok := l.hit(r, want); ok {
		return ref, true
	}
	if l.current() {
		if ref, ok := l.hitCovering(uint64(p.Start), uint64(p.End), want); ok {
			return ref, true // the request's own region, if it is to have one, is not known yet
		}
	}
	c := l.c
	c.mu.Lock()
	defer c.unlock()
	if c.drainUnlocking() != nil {
		return Ref{}, false
	}
	g := c.index.covering(p, a)
	if g == nil || !c.revalidateUnlocking(l, g) {
		return Ref{}, false
	}
	c.stats.Hits++
	if fit := c.index.bestFit(p, a); fit != nil {
		return c.grant(l, g, fit), true
	}
	return c.grant(l, g, g), true
}

// Register registers r for one use, past the cache: the reference's last
// release deregisters it. Idle regions make room as for Acquire. Its ID is zero.
func (l *Local) Register(r mem.Range, a verbs.Access) (Ref, Outcome, error) {
	p, err := pages(r)
	if err != nil {
		return Ref{}, Hit, err
	}
	c := l.c
	c.mu.Lock()
	defer c.unlock()
	if c.closed {
		return Ref{}, Hit, ErrClosed
	}
	return c.registerOnceUnlocking(l, p, a)
}

// pages checks r and returns its whole pages.
func pages(r mem.Range) (mem.Range, error) {
	if r.End < r.Start || r.Len() > 1<<62 {
		return mem.Range{}, fmt.Errorf("%w: %#x to %#x", mem.ErrOverflow, uintptr(r.Start), uintptr(r.End))
	}
	r, err := mem.NewRange(r.Start, r.Len())
	if err != nil {
		return mem.Range{}, err
	}
	return r.PageAligned(), nil
}

// acquire serves a request that was no hit.
func (c *Cache) acquire(l *Local, r mem.Range, a verbs.Access) (Ref, Outcome, error) {
	p, err := pages(r)
	if err != nil {
		return Ref{}, Hit, err
	}
	cacheable := packAccess(a)&otherBit == 0
	c.mu.Lock()
	defer c.unlock()
	outcome := Hit
	for moved := 0; ; {
		if err := c.drainUnlocking(); err != nil {
			return Ref{}, outcome, err
		}
		if !cacheable || moved > movedRetries {
			return c.registerOnceUnlocking(l, p, a)
		}
		fit, err := c.regionFor(p, a)
		if err != nil {
			return Ref{}, outcome, err
		}
		if len(c.retired)+len(c.reclaimable) > 0 {
			// Growing left a registration behind: it goes before another comes.
			_ = c.reclaimUnlocking() // failures are counted in Stats.Leaked
			continue
		}
		by := fit
		if fit.state != registered {
			by = c.index.covering(p, a)
		}
		if by != nil {
			if c.revalidateUnlocking(l, by) {
				return c.served(l, by, fit, outcome)
			}
			continue
		}
		if fit.state != absent {
			outcome = Waited
			c.waitUnlocking(&fit.done)
			continue
		}
		if outcome = First; c.everRegistered.Contains(p) {
			outcome = Late
		}
		switch err := c.registerUnlocking(fit); {
		case err == nil:
			return c.served(l, fit, fit, outcome)
		case errors.Is(err, errMoved):
			moved++ // its mapping changed meanwhile: again, with what is mapped now
		case errors.Is(err, errUncacheable):
			if fit.known() { // its mapping may have changed meanwhile
				c.forget(fit)
			}
			return c.registerOnceUnlocking(l, p, a)
		case fit.known() && fit.rng != p && (errors.Is(err, verbs.ErrNotMapped) || c.fits(fit.rng) != nil):
			c.reshape(fit, p, a) // what the request didn't ask for has gone, or is too much by now
		default:
			if fit.known() && (!fit.wasRegistered || errors.Is(err, verbs.ErrNotMapped)) {
				c.forget(fit)
			}
			return Ref{}, outcome, err
		}
	}
}

// served grants a reference and counts the outcome.
func (c *Cache) served(l *Local, by, fit *region, outcome Outcome) (Ref, Outcome, error) {
	switch outcome {
	case Hit:
		c.stats.Hits++
	case Waited:
		c.stats.Waited++
	case First:
		c.stats.First++
	case Late:
		c.stats.Late++
	}
	return c.grant(l, by, fit), outcome, nil
}

// grant counts a reference to a registered region. Under mu nothing closes it.
func (c *Cache) grant(l *Local, by, fit *region) Ref {
	l.count(by.slot, 1)
	ref := Ref{d: c.tab.desc(by.slot), keys: keysOf(by.mr)}
	if by != fit {
		ref.id = fit.id
	}
	return ref
}
