package pinwheel

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.uber.org/atomic"

	"pinwheel/helper"
	"pinwheel/internal/account"
	"pinwheel/internal/fault"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/vmwatch"
)

// ErrClosed is what calls on a closed Manager or Thread fail with.
var ErrClosed = regcache.ErrClosed

// Manager registers memory for the communication threads of one protection
// domain. All methods are safe for concurrent use.
type Manager struct {
	opt      Options
	beganNs  int64
	provider meteredProvider
	watcher  *vmwatch.Watcher // nil unless opened by New
	cache    *regcache.Cache
	helper   *helper.Thread    // nil without one
	placer   *helper.Placer    // nil without one
	graded   *predictor.Graded // nil without a helper, to which it belongs until that is closed

	// plain is set by the first fault of the communication path: from then on
	// every use is a registration of its own, past the cache.
	plain   atomic.Bool
	faults  atomic.Int64
	closed  atomic.Bool  // set under mu
	commCPU atomic.Int64 // where a communication thread was seen last

	// mu orders the making and closing of Threads and the end of the Manager. It
	// is not taken by uses. regcache's lock is taken under it.
	mu         sync.Mutex
	warned     map[string]bool
	threads    map[*Thread]struct{}
	past       pathStats      // of Threads that were closed
	unreleased []verbs.Region // plain registrations whose deregistration failed
}

// New opens what the options ask for. It fails if they make no sense or
// nothing can register memory; without a helper thread it goes on, says so,
// and leaves memory pinned.
func New(o Options) (*Manager, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	m := &Manager{opt: o, beganNs: helper.NowNs(), warned: make(map[string]bool), threads: make(map[*Thread]struct{})}
	m.commCPU.Store(helper.AnyCPU)
	helper.CalibrateClock()
	if err := fault.Contain(m.open); err != nil {
		return nil, errors.Join(err, fault.Contain(m.closeOwned))
	}
	if o.Policy.helped() && !o.Disable && o.IdlePolicy != "off" {
		if err := fault.Contain(m.startHelper); err != nil {
			m.warn("helper", fmt.Sprintf("%v; going on without helper thread, memory stays pinned", err))
		}
	}
	_ = fault.Contain(func() error { m.inform(); return nil }) // what is said is no reason to fail
	return m, nil
}

// open opens the provider, the watcher and the cache.
func (m *Manager) open() (err error) {
	o := &m.opt
	m.provider = meteredProvider{o.Provider, account.NewMean()}
	if o.Provider == nil {
		if m.provider.Provider, err = OpenProvider(o); err != nil {
			return err
		}
	}
	co := regcache.Options{MaxBytes: o.BudgetBytes, Watcher: o.Watcher, OnFault: m.faulted}
	if co.Watcher == nil && o.Watch != "" {
		if m.watcher, err = vmwatch.Open(vmwatch.Options{Mechanism: o.Watch}); err != nil {
			return err
		}
		co.Watcher = m.watcher
	}
	m.cache, err = regcache.New(m.provider, co)
	return err
}

// startHelper starts the helper thread and, unless it is told where to run,
// what looks for an idle core.
func (m *Manager) startHelper() error {
	o := &m.opt
	cpu := helper.AnyCPU
	if len(o.HelperCPUs) == 1 {
		cpu = o.HelperCPUs[0]
	}
	var err error
	if o.Costs == (verbs.Costs{}) {
		if o.Costs, err = measureCosts(m.plainly(), o.BudgetBytes, helper.NowNs); err != nil {
			o.Costs = defaultCosts // no reason to do without a helper
		}
	}
	var scheduler *helper.Scheduler
	scheduler, m.graded = newScheduler(o)
	m.helper, err = helper.StartThread(helper.ThreadOptions{
		Decider:   scheduler,
		Registrar: wrapped(o.wrapRegistrar, helper.Registrar(registrar{m.cache})),
		CPU:       cpu,
		Gone:      m.gone,
		OnFault:   m.helperFaulted,
	})
	if err != nil || cpu != helper.AnyCPU || o.IdlePolicy == IdleIgnore {
		return err
	}
	policy, err := helper.ParseIdlePolicy(o.IdlePolicy)
	if err != nil {
		return err
	}
	m.placer, err = helper.StartPlacer(helper.PlacerOptions{
		Policy:  policy,
		Bytes:   func() int64 { return m.cache.Stats().Pinned.Bytes },
		CommCPU: func() int { return int(m.commCPU.Load()) },
		Apply:   m.helper.Place,
		Warn:    func(err error) { m.warn("placer", err.Error()) },
		Allowed: o.HelperCPUs,
	})
	if err != nil {
		m.warn("placer", fmt.Sprintf("%v; the kernel places the helper thread", err))
	}
	return nil
}

// itemNs is what one DQ item and one RQ item cost the helper beside the
// registration itself.
const itemNs = 5_000 // 5 us

func newScheduler(o *Options) (*helper.Scheduler, *predictor.Graded) {
	so := helper.SchedulerOptions{Costs: o.Costs, ItemNs: itemNs, Keep: o.Policy == Pinwheel}
	po := predictor.Options{Window: max(o.Window, 0)}
	var p predictor.Predictor = predictor.NewPinwheel(po)
	if o.Policy == Paper {
		p = predictor.NewPaper(po)
	}
	graded := predictor.NewGraded(wrapped(o.wrapPredictor, p))
	return helper.NewScheduler(graded, so), graded
}

func wrapped[T any](wrap func(T) T, inner T) T {
	if wrap == nil {
		return inner
	}
	return wrap(inner)
}

// gone is helper.ThreadOptions.Gone. If the cache could not remember all, the
// helper learns of the others when it acts on them.
func (m *Manager) gone(buf []mem.RegionID) []mem.RegionID {
	buf, _ = m.cache.Gone(buf)
	return buf
}

// registrar makes a cache a helper.Registrar.
type registrar struct{ *regcache.Cache }

func (r registrar) Register(id mem.RegionID) error   { return answer(r.Cache.TryRegister(id)) }
func (r registrar) Deregister(id mem.RegionID) error { return answer(r.Cache.TryDeregister(id)) }

// answer says in the helper's terms what the cache did.
func answer(did bool, err error) error {
	switch {
	case errors.Is(err, regcache.ErrUnknown):
		return fmt.Errorf("%w: %w", helper.ErrGone, err)
	case errors.Is(err, regcache.ErrInUse):
		return fmt.Errorf("%w: %w", helper.ErrInUse, err)
	case err == nil && !did:
		return helper.ErrAlready
	}
	return err
}

// Invalidate must be called before the mapping of registered memory changes:
// munmap, mremap, madvise(MADV_DONTNEED). Idle registrations that share a page
// with r are released before it returns; what is in use stays valid until it is
// released. With Options.Watch or Watcher it is not needed.
func (m *Manager) Invalidate(r mem.Range) (err error) {
	defer m.contain(&err)
	return m.cache.Invalidate(r)
}

// Provider returns what registers memory.
func (m *Manager) Provider() verbs.Provider { return m.provider.Provider }

// Close stops the helper, writes the report that Options.Report asks for, and
// releases every registration that is not in use; the others are released with
// their use. A provider that the Manager opened is closed, which ends those
// too. Acquire fails with ErrClosed from then on, through any Thread. Close may be
// called at any time, and more than once: only the first does anything.
func (m *Manager) Close() error {
	m.mu.Lock()
	first := !m.closed.Swap(true)
	m.mu.Unlock()
	if !first {
		return nil
	}
	// Whatever one of them does, the others are done too.
	var errs []error
	report := func() error { m.report(); return nil }
	for _, end := range []func() error{m.closeHelper, report, m.cache.Close, m.retry, m.closeOwned} {
		errs = append(errs, fault.Contain(end))
	}
	return errors.Join(errs...)
}

func (m *Manager) closeHelper() error {
	if m.placer != nil {
		m.placer.Close()
	}
	if m.helper != nil {
		return m.helper.Close()
	}
	return nil
}

// closeOwned closes what open has opened, as far as it got.
func (m *Manager) closeOwned() error {
	var errs []error
	if m.watcher != nil {
		errs = append(errs, m.watcher.Close())
	}
	if m.opt.Provider == nil && m.provider.Provider != nil {
		errs = append(errs, m.provider.Close())
	}
	return errors.Join(errs...)
}

// warn says in one line, and once for each kind of fault, that Pinwheel does
// less than it should.
func (m *Manager) warn(kind, message string) {
	m.mu.Lock()
	said := m.warned[kind]
	m.warned[kind] = true
	m.mu.Unlock()
	if !said {
		message = strings.ReplaceAll(message, "\n", "; ")
		if tell(m.opt.Warn, message) != nil {
			logStderr(message)
		}
	}
}
