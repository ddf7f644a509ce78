package pinwheel

import (
	"errors"
	"fmt"

	"pinwheel/internal/account"
	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// ErrFault: a panic below Acquire was contained, and then one of the plain
// registration that took its place. Send without registration, or give up.
var ErrFault = regcache.ErrFault

// contain, deferred, turns a panic into ErrFault, as faulted says.
func (m *Manager) contain(err *error) {
	if p := recover(); p != nil {
		f := fault.Of(p)
		*err = f
		m.faulted(f)
	}
}

// faulted makes every later use a plain registration, past the cache, and says so.
func (m *Manager) faulted(f *fault.Fault) { m.step("going on with plain registration", f, true) }

// helperFaulted says that the helper has stopped. The cache goes on.
func (m *Manager) helperFaulted(f *fault.Fault) {
	m.step("going on without helper thread, memory stays pinned (or, should that come again, with plain registration)", f, false)
}

// step goes one step down after a fault. The user hears of the first step in one
// line; those who asked for it hear of each, with the stack.
func (m *Manager) step(down string, f *fault.Fault, plain bool) {
	first := m.faults.Inc() == 1
	if plain && m.plain.Swap(true) {
		return
	}
	message := fmt.Sprintf("%v; %s", f, down)
	if first {
		m.warn("fault", message+" (PINWHEEL_LOG=debug says where)")
	}
	if m.opt.Debug != nil {
		_ = tell(m.opt.Debug, fmt.Sprintf("%s\n%s", message, f.Stack))
	}
}

// tell gives a function of the caller's a message. It fails if that panics.
func tell(whom func(string), message string) error {
	return fault.Contain(func() error { whom(message); return nil })
}

// meteredProvider knows what the process pins through it.
type meteredProvider struct {
	verbs.Provider
	pinned *account.Mean
}

func (p meteredProvider) Register(r mem.Range, a verbs.Access) (verbs.Region, error) {
	region, err := p.Provider.Register(r, a)
	if err == nil {
		p.pinned.Change(int64(region.Range.Len()))
	}
	return region, err
}

func (p meteredProvider) Deregister(region verbs.Region) error {
	err := p.Provider.Deregister(region)
	if err == nil {
		p.pinned.Change(-int64(region.Range.Len()))
	}
	return err
}

// plainProvider registers past the cache. Its panics are contained, and what it
// fails to deregister is left to Manager.Close.
type plainProvider struct {
	meteredProvider
	m *Manager
}

func (m *Manager) plainly() plainProvider { return plainProvider{m.provider, m} }

func (p plainProvider) Register(r mem.Range, a verbs.Access) (region verbs.Region, err error) {
	defer p.m.contain(&err)
	return p.meteredProvider.Register(r, a)
}

func (p plainProvider) Deregister(region verbs.Region) error {
	err := p.deregister(region)
	if err != nil && !errors.Is(err, verbs.ErrUnknownRegion) && !errors.Is(err, verbs.ErrClosed) {
		p.m.mu.Lock()
		defer p.m.mu.Unlock()
		p.m.unreleased = append(p.m.unreleased, region)
	}
	return err
}

func (p plainProvider) deregister(region verbs.Region) (err error) {
	defer p.m.contain(&err)
	return p.meteredProvider.Deregister(region)
}

// closeTries bounds how often Close tries to release what fails to be released.
const closeTries = 3

// retry tries to deregister what could not be deregistered when its use ended.
func (m *Manager) retry() (err error) {
	for try := 0; try == 0 || try < closeTries && err != nil; try++ {
		m.mu.Lock()
		all := m.unreleased
		m.unreleased = nil
		m.mu.Unlock()
		err = nil
		for _, region := range all {
			err = errors.Join(err, m.plainly().Deregister(region))
		}
	}
	return err
}
