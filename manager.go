package pinwheel

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"go.uber.org/atomic"

	"pinwheel/helper"
	"pinwheel/internal/engine"
	"pinwheel/internal/fault"
	"pinwheel/internal/settings"
	"pinwheel/mem"
	"pinwheel/regcache"
	"pinwheel/verbs"
	"pinwheel/verbs/calibrate"
	"pinwheel/verbs/open"
	"pinwheel/vmwatch"
)

// ErrClosed is the error of calls on a closed Manager or Thread.
var ErrClosed = regcache.ErrClosed

// Manager registers memory for the communication threads of one protection
// domain. All methods are safe for concurrent use.
type Manager struct {
	opt      Options
	provider engine.Metered
	watcher  *vmwatch.Watcher // nil unless opened by New
	group    *regcache.Group  // of the one cache, for what is registered past it
	cache    *regcache.Cache
	engine   *engine.Engine

	// plain is set by the first fault of the communication path: from then on
	// every use is a registration of its own, past the cache.
	plain   atomic.Bool
	closed  atomic.Bool  // set under mu
	commCPU atomic.Int64 // processor of the communication thread that missed last

	// preparing ends with the Manager, which can't wait until all of a pool is there.
	preparing    context.Context
	endPreparing context.CancelFunc

	// mu orders the making and closing of Threads and the end of the Manager. Uses
	// never take it. regcache's lock is taken under it.
	mu            sync.Mutex
	threads       map[*Thread]struct{}
	closedThreads threadStats    // sums
	unreleased    []verbs.Region // plain registrations whose deregistration failed
}

// New opens the provider, the watcher and the cache that the options ask for, and
// starts a helper thread. It fails if the options make no sense or nothing can
// register memory. If no helper can be started it warns, and memory stays pinned.
func New(o Options) (*Manager, error) {
	if err := o.EnsureDefaults(); err != nil {
		return nil, err
	}
	m := &Manager{opt: o, engine: engine.New(o.Warn, o.Debug), threads: make(map[*Thread]struct{})}
	m.commCPU.Store(helper.AnyCPU)
	m.preparing, m.endPreparing = context.WithCancel(context.Background())
	if err := fault.Contain(m.open); err != nil {
		return nil, errors.Join(err, fault.Contain(m.closeOwned))
	}
	if !o.Disable {
		m.engine.JoinNode(engine.NodeOptions{
			Job: settings.Job(), Rank: settings.Rank(), Group: m.group,
			BudgetBytes: cmp.Or(o.NodeBudgetBytes, mem.Unlimited), Ranks: settings.LocalRanks(),
		})
		m.startHelper()
		m.engine.FollowNode()
	}
	_ = fault.Contain(func() error { m.inform(); return nil }) // a message is no reason to fail
	return m, nil
}

// open opens the provider, the watcher and the cache.
func (m *Manager) open() (err error) {
	o := &m.opt
	p := o.Provider
	if p == nil {
		if p, err = OpenProvider(o); err != nil {
			return err
		}
	}
	m.provider = m.engine.Metered(p)
	m.group = regcache.NewGroup(mem.Unlimited)
	co := regcache.Options{MaxBytes: o.BudgetBytes, Group: m.group, Watcher: o.Watcher, OnFault: m.faulted}
	if co.Watcher == nil && o.Watch != "" {
		m.watcher, err = vmwatch.Open(vmwatch.Options{
			Mechanism: o.Watch, Service: o.WatchService,
			OnRefused: func(message string) { m.engine.Warn(message, message) },
		})
		if err != nil {
			return err
		}
		co.Watcher = m.watcher
	}
	m.cache, err = regcache.New(m.provider, co)
	return err
}

// OpenProvider opens the provider that o.ProviderName names, for callers that
// register without a Manager; they close it. auto stands for the first that works:
// rdma where there is a device, else uring, else mlock.
func OpenProvider(o *Options) (verbs.Provider, error) {
	return open.Provider(o.ProviderName, open.Options{Device: o.RDMADevice, Costs: o.Costs})
}

// startHelper starts the helper if the policy has one, with the costs from the
// options, or else with costs that it measures now.
func (m *Manager) startHelper() {
	o := &m.opt
	if !engine.HasHelper(string(o.Policy)) || o.IdlePolicy == "off" {
		return
	}
	if o.Costs == (verbs.Costs{}) {
		err := fault.Contain(func() (err error) { o.Costs, err = calibrate.Quick(m.plainly(), o.BudgetBytes); return err })
		if err != nil {
			o.Costs = verbs.DefaultCosts // the helper corrects them
		}
		if f := fault.In(err); f != nil {
			m.faulted(f)
		}
	}
	m.engine.StartHelper(engine.HelperOptions{
		Policy: string(o.Policy), Window: max(o.Window, 0), Costs: o.Costs, Caches: engine.Single{Cache: m.cache},
		IdlePolicy: o.IdlePolicy, Cost: o.Cost, CPUs: o.HelperCPUs,
		PinnedBytes: func() int64 { return m.cache.Pinned().Bytes },
		CommCPU:     func() int { return int(m.commCPU.Load()) },
		Profile: engine.Profiles{Dir: o.ProfileDir, LimitBytes: cmp.Or(o.ProfileLimitBytes, 256<<20), Force: o.ProfileForce}.
			Of(settings.Rank(), 0, uint64(o.ThresholdBytes)),
		Trained:       o.Trained,
		WrapPredictor: o.wrapPredictor, WrapRegistrar: o.wrapRegistrar,
	})
}

// Invalidate must be called before the mapping of registered memory changes:
// munmap, mremap, madvise(MADV_DONTNEED). It releases idle registrations that
// share a page with r before it returns; a registration in use stays valid until
// its last use ends. With Options.Watch or Watcher no call is needed.
func (m *Manager) Invalidate(r mem.Range) (err error) {
	defer m.contain(&err)
	return m.cache.Invalidate(r)
}

// Provider returns the provider that registers memory.
func (m *Manager) Provider() verbs.Provider { return m.provider.Provider }

// Close stops the helper, writes the report that Options.Report asks for, and
// releases every registration that is not in use; the others are released when
// their use ends. If the Manager opened the provider, Close closes it, which ends
// them too. From then on Acquire fails with ErrClosed through any Thread. Close may
// be called at any time; later calls do nothing.
func (m *Manager) Close() error {
	m.mu.Lock()
	first := !m.closed.Swap(true)
	m.mu.Unlock()
	if !first {
		return nil
	}
	m.endPreparing()
	// Each step runs even if one before it fails or panics.
	var errs []error
	report := func() error { m.report(); return nil }
	keep := func() error { m.engine.SaveProfile(); return nil }
	for _, end := range []func() error{m.engine.Close, report, m.cache.Close, m.retry, m.closeOwned, m.leave, keep} {
		errs = append(errs, fault.Contain(end))
	}
	return errors.Join(errs...)
}

// leave leaves the job on this node. A provider that was closed holds nothing.
func (m *Manager) leave() error {
	bytes := m.group.Bytes()
	if m.opt.Provider == nil {
		bytes = 0
	}
	m.engine.LeaveNode(bytes)
	return nil
}

// closeOwned closes whatever open has opened so far.
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
