package pinwheel

import (
	"errors"

	"pinwheel/internal/engine"
	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
)

// ErrFault is the error of Acquire after a panic in the plain registration that
// replaces the cache once a first panic was contained. Send without registration, or give up.
var ErrFault = regcache.ErrFault

// contain, deferred, turns a panic into ErrFault, as faulted says.
func (m *Manager) contain(err *error) {
	if p := recover(); p != nil {
		f := fault.Of(p)
		*err = f
		m.faulted(f)
	}
}

// faulted makes every later use a plain registration, past the cache, and warns.
func (m *Manager) faulted(f *fault.Fault) {
	m.plain.Store(true)
	m.engine.Fault(f, "going on with plain registration")
}

// plainProvider registers past the cache. It contains panics, and leaves regions
// that it fails to deregister to Manager.Close.
type plainProvider struct {
	engine.Metered
	m *Manager
}

func (m *Manager) plainly() plainProvider { return plainProvider{m.provider, m} }

func (p plainProvider) Register(r mem.Range, a verbs.Access) (region verbs.Region, err error) {
	bytes := int64(r.PageAligned().Len())
	if err := p.m.group.Charge(bytes); err != nil {
		return region, &verbs.Error{Op: "register", Range: r, Kind: err}
	}
	defer func() {
		if err != nil {
			p.m.group.Uncharge(bytes)
		}
	}()
	defer p.m.contain(&err)
	return p.Metered.Register(r, a)
}

func (p plainProvider) Deregister(region verbs.Region) error {
	err := p.deregister(region)
	if err != nil && !errors.Is(err, verbs.ErrUnknownRegion) && !errors.Is(err, verbs.ErrClosed) {
		p.m.mu.Lock()
		defer p.m.mu.Unlock()
		p.m.unreleased = append(p.m.unreleased, region)
		return err
	}
	p.m.group.Uncharge(int64(region.Range.Len()))
	return err
}

func (p plainProvider) deregister(region verbs.Region) (err error) {
	defer p.m.contain(&err)
	return p.Metered.Deregister(region)
}

// closeTries bounds how often Close tries to deregister a region that can't be deregistered.
const closeTries = 3

// retry deregisters regions that could not be deregistered when their use ended.
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
