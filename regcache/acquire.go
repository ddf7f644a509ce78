package regcache

import (
	"errors"
	"fmt"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// IsRegistered returns a counted reference if all of r is registered with the rights a. It
// registers nothing.
func (l *Local) IsRegistered(r mem.Range, a verbs.Access) (Ref, bool) {
	p, err := pages(r)
	if err != nil {
		return Ref{}, false
	}
	want := packAccess(a)
	if ref, ok := l.hit(r, want); ok {
		return ref, true
	}
	if l.hdr.current() {
		if ref, ok := l.hitCovering(uint64(p.Start), uint64(p.End), want); ok {
			return ref, true // the request's own region, if it is to have one, is not known yet
		}
	}
	c := l.c
	c.mu.Lock()
	defer c.unlock()
	c.publishUnlocking()
	if c.drainUnlocking() != nil {
		return Ref{}, false
	}
	g := c.covering(p, a)
	if g == nil || !c.revalidateUnlocking(l, g) {
		return Ref{}, false
	}
	c.stats.Hits++
	own := c.bestFit(p, a)
	if own == nil {
		own = g
	}
	return c.grant(l, g, own), true
}

// Register registers r for one use, past the cache: releasing the reference deregisters it. The
// reference's ID is zero. Register evicts idle regions, and fails, as Acquire does.
func (l *Local) Register(r mem.Range, a verbs.Access) (Ref, Outcome, error) {
	p, err := pages(r)
	if err != nil {
		return Ref{}, Hit, err
	}
	c := l.c
	c.mu.Lock()
	defer c.unlock()
	q := &request{local: l, pages: p, access: a}
	for {
		if c.closed {
			return Ref{}, Hit, ErrClosed
		}
		if ref, err := c.registerOnceUnlocking(q); !c.awaitShareUnlocking(q, err) {
			return ref, q.outcome, err
		}
	}
}

// AcquireMissed is Acquire for C code whose pwt_get of table.h has returned 0. It does not look once
// more without the lock, and releases registrations that the hit kept from being released.
func (l *Local) AcquireMissed(r mem.Range, a verbs.Access) (Ref, Outcome, error) {
	l.c.Sweep()
	return l.c.acquire(l, r, a)
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

// request is one that was no hit.
type request struct {
	local   *Local
	pages   mem.Range
	access  verbs.Access
	outcome Outcome // so far
	ahead   *ahead  // nil for a use
	moved   int     // how often its mapping changed while it was being registered
	awaited bool    // other processes were asked to release memory
}

// errAgain ends an attempt to serve a request that changed what stood in the way, or waited
// for it. The next attempt finds another state.
var errAgain = errors.New("again")

// acquire serves a request that was no hit.
func (c *Cache) acquire(l *Local, r mem.Range, a verbs.Access) (Ref, Outcome, error) {
	p, err := pages(r)
	if err != nil {
		return Ref{}, Hit, err
	}
	q := &request{local: l, pages: p, access: a}
	c.mu.Lock()
	defer c.unlock()
	ref, err := c.serveUnlocking(q)
	return ref, q.outcome, err
}

// serveUnlocking makes attempts until one serves a request or fails for good.
func (c *Cache) serveUnlocking(q *request) (Ref, error) {
	for {
		if err := q.ahead.err(); err != nil {
			return Ref{}, err
		}
		if ref, err := c.attemptUnlocking(q); err != errAgain && !c.awaitShareUnlocking(q, err) {
			return ref, err
		}
	}
}

// awaitShareUnlocking waits once for room in the share of this process if the lack of it is why a
// request fails, and reports whether there is some now.
func (c *Cache) awaitShareUnlocking(q *request, failed error) (ok bool) {
	if q.awaited || !errors.Is(failed, errShare) {
		return false
	}
	q.awaited = true
	_ = c.withoutLock(func() error {
		ok = c.opts.Group.await(int64(q.pages.Len()))
		return nil
	})
	return ok
}

// attemptUnlocking serves a request according to the state of its region:
//
//	registered              serve, once the watcher has revalidated it
//	covered by another one  likewise, by that one
//	registering, draining   wait for the end, and look again
//	absent                  register it
func (c *Cache) attemptUnlocking(q *request) (Ref, error) {
	c.publishUnlocking()
	if err := c.drainUnlocking(); err != nil {
		return Ref{}, err
	}
	if packAccess(q.access)&otherBit != 0 || q.moved > movedRetries {
		return c.registerOnceUnlocking(q)
	}
	if f := c.refuses(q.pages, q.access); f != nil {
		return c.answerUnlocking(q, f)
	}
	own, err := c.regionFor(q.pages, q.access)
	if err != nil {
		return Ref{}, err
	}
	if len(c.retired)+len(c.reclaimable) > 0 { // by growing: they go before another comes
		_ = c.reclaimUnlocking() // failures are counted in Stats.Leaked
		return Ref{}, errAgain
	}
	serving := own
	if own.state != registered {
		serving = c.covering(q.pages, q.access)
	}
	switch {
	case serving == nil && own.state == absent:
		return c.registerForUnlocking(q, own)
	case serving == nil:
		q.outcome = Waited
		c.waitUnlocking(&own.done, q.ahead.ended())
	case c.revalidateUnlocking(q.local, serving):
		return c.served(q, serving, own), nil
	}
	return Ref{}, errAgain
}

// registerForUnlocking registers the absent region of a request.
func (c *Cache) registerForUnlocking(q *request, own *region) (Ref, error) {
	q.outcome = c.firstOrLate(q.pages, q.access)
	err := c.registerUnlocking(own, q.ahead)
	switch {
	case err == nil && q.ahead.err() != nil:
		return Ref{}, c.withdrawAheadUnlocking(own, q.ahead)
	case err == nil:
		c.forgive(own)
		return c.served(q, own, own), nil
	case errors.Is(err, errMoved): // again, with what is mapped now
		q.moved++
		return Ref{}, errAgain
	case own.known() && c.isTooMuch(own, q, err):
		c.reshape(own, q.pages, q.access)
		return Ref{}, errAgain
	case errors.Is(err, errUncacheable):
		c.refuse(own, nil)
		_ = c.reclaimUnlocking() // ends watches; failures are counted in Stats.Leaked
		return c.registerOnceUnlocking(q)
	case c.opts.Fallback && isLasting(err):
		c.refuse(own, err)
	case !own.wasRegistered || errors.Is(err, verbs.ErrNotMapped):
		c.forget(own)
	}
	_ = c.reclaimUnlocking() // likewise
	return Ref{}, err
}

// isTooMuch reports whether a region may have failed for pages or rights that the request did not ask for: those may
// be unmapped, read-only, another device's, or too much by now.
func (c *Cache) isTooMuch(own *region, q *request, err error) bool {
	if errors.Is(err, verbs.ErrNotMapped) {
		return own.rng != q.pages || own.access != q.access
	}
	refused := errors.Is(err, errUncacheable) && own.watched
	return own.rng != q.pages && (refused || c.fits(own.rng) != nil)
}

// firstOrLate is the outcome of a registration of p.
func (c *Cache) firstOrLate(p mem.Range, a verbs.Access) Outcome {
	if c.everRegistered.with(a).Contains(p) {
		return Late
	}
	return First
}

// served grants a reference to the region that serves a request and counts the outcome.
func (c *Cache) served(q *request, serving, own *region) Ref {
	if q.ahead != nil {
		c.reopen(serving) // the helper may be about to release it
		return Ref{}
	}
	switch q.outcome {
	case Hit:
		c.stats.Hits++
	case Waited:
		c.stats.Waited++
	case First:
		c.stats.First++
	case Late:
		c.stats.Late++
	}
	return c.grant(q.local, serving, own)
}

// grant counts a reference to a registered region. Under mu nothing closes it.
func (c *Cache) grant(l *Local, serving, own *region) Ref {
	c.reopen(serving)
	l.count(serving.slot, 1)
	d := c.tab.desc(serving.slot)
	ref := Ref{d: d, keys: d.keys}
	if serving != own {
		ref.id = own.id
	}
	return ref
}
