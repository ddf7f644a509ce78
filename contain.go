package pinwheel

import (
	"errors"
	"fmt"
	"runtime/debug"

	"pinwheel/internal/account"
	"pinwheel/mem"
	"pinwheel/verbs"
)

// ErrFault: a panic below Acquire was contained, and then one of the plain
// registration that took its place. Send without registration, or give up.
var ErrFault = errors.New("pinwheel: internal fault")

// contain, deferred, turns a panic into ErrFault. It says so once and makes
// every later use a plain registration, past the cache.
func (m *Manager) contain(err *error) {
	if p := recover(); p != nil {
		m.plain.Store(true)
		*err = fmt.Errorf("%w: %v", ErrFault, p)
		m.warnOfFault("fault", fmt.Sprintf("internal fault: %v; going on with plain registration", p), debug.Stack())
	}
}

// warnOfFault warns in one line, and gives the stack to those who asked for it.
func (m *Manager) warnOfFault(kind, message string, stack []byte) {
	if m.warn(kind, message+" (PINWHEEL_LOG=debug says where)") && m.opt.Debug != nil {
		m.opt.Debug(fmt.Sprintf("%s\n%s", message, stack))
	}
}

// containedProvider contains the panics of a provider below the cache, which
// could not go on after one: its lock is open during the provider's calls. What
// passes through it is also what the process pins.
type containedProvider struct {
	verbs.Provider
	m      *Manager
	pinned *account.Mean
}

func (c containedProvider) Register(r mem.Range, a verbs.Access) (region verbs.Region, err error) {
	defer c.m.contain(&err)
	region, err = c.Provider.Register(r, a)
	if err == nil {
		c.pinned.Change(int64(region.Range.Len()))
	}
	return region, err
}

func (c containedProvider) Deregister(region verbs.Region) (err error) {
	defer c.m.contain(&err)
	if err = c.Provider.Deregister(region); err == nil {
		c.pinned.Change(-int64(region.Range.Len()))
	}
	return err
}
