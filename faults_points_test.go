package pinwheel

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// point is one kind of call that we make to what was plugged in, or to a part
// of ours that a fault must not leave.
type point int

const (
	atRegister point = iota
	atDeregister
	atLimits
	atWatch
	atUnwatch
	atPinning
	atPinned
	atUnchanged
	atDrain
	atObserve
	atNext
	atChanged
	atForget
	atHelperRegister
	atHelperDeregister
	atWarn  // after a panic of the provider, like the next
	atDebug //
	atWord  // in New, like those that follow
	atRegisterInNew
	atDeregisterInNew
	pointCount
)

var pointNames = [pointCount]string{
	"register", "deregister", "limits", "watch", "unwatch", "pinning", "pinned", "unchanged", "drain",
	"observe", "next", "changed", "forget", "helper-register", "helper-deregister", "warn", "debug", "word",
	"register-in-new", "deregister-in-new",
}

// kind is what a call does instead of what it should.
type kind int

const (
	panicking kind = iota
	failing
	dawdling
	kindCount
)

// canFail reports whether calls of a point can return an error or a refusal.
func (p point) canFail() bool {
	switch p {
	case atRegister, atDeregister, atWatch, atPinned, atUnchanged, atHelperRegister, atHelperDeregister,
		atRegisterInNew, atDeregisterInNew:
		return true
	}
	return false
}

var errSeeded = errors.New("trained error")

// run is one fault in one Manager.
type run struct {
	point  point
	kind   kind
	nth    int64 // counted from 1
	calls  [pointCount]atomic.Int64
	armed  atomic.Bool
	fired  atomic.Bool
	warned warnings
}

// at is where each call of a point goes through.
func (r *run) at(p point) error {
	if r.point == atWarn || r.point == atDebug {
		if p == atRegister && r.armed.CompareAndSwap(true, false) {
			panic("trained fault, for somebody to say")
		}
	} else if !r.armed.Load() {
		return nil
	}
	if p != r.point || r.calls[p].Add(1) != r.nth {
		return nil
	}
	r.fired.Store(true)
	switch r.kind {
	case panicking:
		panic("trained fault")
	case failing:
		return errSeeded
	}
	time.Sleep(time.Millisecond)
	return nil
}

// tripped is a provider, a watcher, a predictor and a registrar under test.
type tripped struct {
	*run
	watchful
	*changes
}

func (x *tripped) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	if err := errors.Join(x.at(atRegister), x.at(atRegisterInNew)); err != nil {
		return verbs.Region{}, err
	}
	return x.watchful.Register(r, a)
}

func (x *tripped) Deregister(g verbs.Region) error {
	if err := errors.Join(x.at(atDeregister), x.at(atDeregisterInNew)); err != nil {
		return err
	}
	return x.watchful.Deregister(g)
}

func (x *tripped) Limits() verbs.Limits {
	_ = x.at(atLimits)
	return x.Provider.Limits()
}

func (x *tripped) Word() *uint64 {
	_ = x.at(atWord)
	return &x.word
}

func (x *tripped) Watch(r mem.Range) (uint64, bool, error) {
	if err := x.at(atWatch); err != nil {
		return 0, false, err
	}
	token, verify := x.changes.watch(r)
	return token, verify, nil
}

func (x *tripped) Unwatch(uint64)      { _ = x.at(atUnwatch) }
func (x *tripped) Pinning(uint64)      { _ = x.at(atPinning) }
func (x *tripped) Pinned(uint64) error { return x.at(atPinned) }
func (x *tripped) Unchanged(tok uint64) bool {
	return x.at(atUnchanged) == nil && x.changes.isSame(tok)
}

func (x *tripped) Drain(drop func(mem.Range)) uint64 {
	return x.changes.drain(func(r mem.Range) {
		drop(r)
		_ = x.at(atDrain)
	})
}

// changes is a watcher that the traffic tells what changed: half of the memory
// is notified of, half is to be verified.
type changes struct {
	word    uint64 // raw: regcache.Watcher.Word points to it
	mu      sync.Mutex
	last    uint64
	watched map[uint64]mem.Range
	stale   map[uint64]bool
	pending []mem.Range
	verify  mem.Addr // from here on
}

func (c *changes) watch(r mem.Range) (token uint64, verify bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	c.watched[c.last] = r
	return c.last, r.Start >= c.verify
}

func (c *changes) isSame(token uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	same := !c.stale[token]
	delete(c.stale, token)
	return same
}

func (c *changes) drain(drop func(mem.Range)) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	generation := atomic.LoadUint64(&c.word)
	for _, r := range c.pending {
		drop(r)
	}
	c.pending = nil
	return generation
}

func (c *changes) change(r mem.Range) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.Start < c.verify {
		c.pending = append(c.pending, r)
		atomic.AddUint64(&c.word, 1)
		return
	}
	for token, o := range c.watched {
		if o.Overlaps(r) {
			c.stale[token] = true
		}
	}
}

type trippedPredictor struct {
	*run
	predictor.Predictor
}

func (x trippedPredictor) Observe(u predictor.Use) {
	_ = x.at(atObserve)
	x.Predictor.Observe(u)
}

func (x trippedPredictor) Next(id mem.RegionID, nowNs int64) (predictor.Prediction, bool) {
	_ = x.at(atNext)
	return x.Predictor.Next(id, nowNs)
}

func (x trippedPredictor) Changed() []mem.RegionID {
	_ = x.at(atChanged)
	return x.Predictor.Changed()
}

func (x trippedPredictor) Forget(id mem.RegionID) {
	_ = x.at(atForget)
	x.Predictor.Forget(id)
}

type trippedRegistrar struct {
	*run
	helper.Registrar
}

func (x trippedRegistrar) Register(id mem.RegionID) error {
	if err := x.at(atHelperRegister); err != nil {
		return err
	}
	return x.Registrar.Register(id)
}

func (x trippedRegistrar) Deregister(id mem.RegionID) error {
	if err := x.at(atHelperDeregister); err != nil {
		return err
	}
	return x.Registrar.Deregister(id)
}
