package pinwheel

import (
	"errors"

	"pinwheel/helper"
	"pinwheel/internal/clock"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// Use is one use of registered memory, from Acquire to Release. A transport
// keeps one in each of its requests, and Acquire fills it in. It must not be
// copied while it is acquired.
type Use struct {
	ref     regcache.Ref
	plain   *verbs.Region // instead of ref: registered past the cache after a fault
	used    mem.Range
	site    *Site
	startNs int64
	op      Op
}

// LKey returns the local key of the registration.
func (u *Use) LKey() uint32 {
	if u.plain != nil {
		return u.plain.LKey
	}
	return u.ref.LKey()
}

// RKey returns the remote key of the registration.
func (u *Use) RKey() uint32 {
	if u.plain != nil {
		return u.plain.RKey
	}
	return u.ref.RKey()
}

// Region returns the registration, which may be larger than what was asked for.
func (u *Use) Region() verbs.Region {
	if u.plain != nil {
		return *u.plain
	}
	return u.ref.Region()
}

// Acquire makes the memory r usable for a communication with the rights a, and
// registers it if necessary. A hit takes no lock, allocates nothing and makes no
// system call. u is overwritten. op and site tell the predictor what the program is
// doing; site may be nil, and must stay unchanged until Release.
//
// It fails as regcache.Local.Acquire does, or with ErrFault; u then holds nothing.
// With verbs.ErrPinnedMemory or verbs.ErrRegions, other uses leave no room at the
// moment: copy through a buffer that is registered already, or wait.
func (t *Thread) Acquire(u *Use, r mem.Range, a verbs.Access, op Op, site *Site) error {
	u.plain, u.used, u.site, u.op = nil, r, site, op
	u.startNs = clock.NowNs()
	var outcome regcache.Outcome
	var err error
	u.ref, outcome, err = t.lookup(r, a)
	if outcome == regcache.Hit && err == nil {
		return nil
	}
	return t.missed(u, a, outcome, err)
}

// AcquireOnce is Acquire for memory that is not worth keeping: the registration ends with Release, whatever the policy,
// and the predictor hears of neither. It counts towards the limits, and is no hit even if r is registered. For data
// that is used once, or is too large to be found again, it spares what a policy would do to keep it.
func (t *Thread) AcquireOnce(u *Use, r mem.Range, a verbs.Access, op Op, site *Site) error {
	u.plain, u.used, u.site, u.op = nil, r, site, op
	u.startNs = clock.NowNs()
	ref, outcome, err := t.registerOnce(r, a)
	u.ref = ref
	t.ran()
	if errors.Is(err, ErrFault) {
		err = t.acquirePlain(u, a)
	}
	endNs := clock.NowNs()
	t.stats.misses++
	t.stats.stallNs.Add(endNs - u.startNs)
	t.m.engine.Uncached(outcome, u.callSite(), u.startNs, endNs)
	return err
}

// registerOnce asks the cache. A panic of it becomes ErrFault.
func (t *Thread) registerOnce(r mem.Range, a verbs.Access) (ref regcache.Ref, o regcache.Outcome, err error) {
	defer t.m.contain(&err)
	switch {
	case t.mode == closed:
		return ref, o, ErrClosed
	case t.m.plain.Load() && t.mode != uncached:
		return ref, o, ErrFault
	}
	return t.local.Register(r, a)
}

// lookup asks the cache. A panic of it becomes ErrFault.
func (t *Thread) lookup(r mem.Range, a verbs.Access) (ref regcache.Ref, o regcache.Outcome, err error) {
	defer t.m.contain(&err)
	switch {
	case t.mode == closed:
		return ref, o, ErrClosed
	case t.mode == uncached:
		return t.local.Register(r, a)
	case t.m.plain.Load():
		return ref, o, ErrFault
	default:
		return t.local.Acquire(r, a)
	}
}

// ran notes for the Placer where the thread runs, with a system call that hits must not pay for.
func (t *Thread) ran() {
	if t.dq != nil {
		t.m.commCPU.Store(int64(helper.CurrentCPU()))
	}
}

// missed accounts for a use that was no hit, and serves it after a fault.
func (t *Thread) missed(u *Use, a verbs.Access, o regcache.Outcome, err error) error {
	t.ran()
	if errors.Is(err, ErrFault) {
		err = t.acquirePlain(u, a)
	}
	endNs := clock.NowNs()
	t.stats.misses++
	t.stats.stallNs.Add(endNs - u.startNs)
	t.m.engine.Missed(o, t.observed(u), u.callSite(), u.startNs, endNs)
	return err
}

// observed returns the region of a use whose end the helper will hear of; zero for any other. Of those it must not hear
// of the miss either: it would wait for the end.
func (t *Thread) observed(u *Use) mem.RegionID {
	if t.dq == nil || !u.ref.Valid() || u.used.Len() < uint64(t.m.opt.ThresholdBytes) {
		return 0
	}
	return u.ref.ID()
}

// callSite is what the predictor knows the use by.
func (u *Use) callSite() predictor.CallSite {
	c := predictor.CallSite{Op: u.op}
	if u.site != nil {
		c.Frames = *u.site
	}
	return c
}

// acquirePlain registers past the cache.
func (t *Thread) acquirePlain(u *Use, a verbs.Access) error {
	if t.m.closed.Load() {
		return ErrClosed
	}
	region, err := t.m.plainly().Register(u.used, a)
	if err != nil {
		return err
	}
	t.stats.faulted.Inc()
	u.plain = &region
	return nil
}

// Release ends a use whose communication has completed. The helper hears of it
// through the ring of this Thread, which need not be the one that acquired it. Release
// neither blocks nor allocates, unless the registration was for this use alone. It
// ignores a Use that holds nothing.
func (t *Thread) Release(u *Use) {
	if !u.ref.Valid() {
		t.releasePlain(u)
		return
	}
	id, pages := t.observed(u), u.ref.Region().Range.Len()/mem.PageSize
	// First of all: the helper can't deregister what is in use.
	t.drop(u.ref)
	u.ref = regcache.Ref{}
	if t.mode == closed || id == 0 {
		return
	}
	e := &t.event
	e.Region, e.Range, e.Pages = id, u.used, pages
	e.StartNs, e.EndNs, e.Op = u.startNs, clock.NowNs(), u.op
	if u.site != nil {
		e.Frames = *u.site
	} else {
		e.Frames = Site{}
	}
	t.dq.Push(e)
}

func (t *Thread) drop(ref regcache.Ref) {
	var err error
	defer t.m.contain(&err)
	if t.mode == closed { // its Local may be another's by now
		t.m.cache.Release(ref)
		return
	}
	t.local.Release(ref)
}

// releasePlain ends a registration past the cache.
func (t *Thread) releasePlain(u *Use) {
	if u.plain != nil {
		_ = t.m.plainly().Deregister(*u.plain) // a failure is left to Close
		u.plain = nil
	}
}
