package engine

import (
	"cmp"
	"fmt"
	"runtime"

	"pinwheel/helper"
	"pinwheel/internal/clock"
	"pinwheel/internal/fault"
	"pinwheel/placement"
	"pinwheel/predictor"
	"pinwheel/schedule"
	"pinwheel/verbs"
)

// IdlePolicyIgnore is an idle policy beside those of PINWHEEL_IDLE_POLICY: the
// helper runs wherever the kernel puts it, idle core or not.
const IdlePolicyIgnore = "ignore"

// HelperOptions say which caches a helper serves, how, and where it runs.
type HelperOptions struct {
	Policy string // pinwheel, paper or paper-strict
	Window int    // of the predictor's context
	// Costs are the provider's to begin with; zero stands for verbs.DefaultCosts.
	Costs  verbs.Costs
	Caches Caches
	Clock  clock.Clock // nil: clock.Shared

	IdlePolicy string // as in PINWHEEL_IDLE_POLICY, or IdlePolicyIgnore
	// Cost is as in schedule.SchedulerOptions, or NoCost: then no helper shares the core of its rank, either.
	Cost float64
	// OnDemand begins or ends that uses are served on demand, while no core is idle and the helper would share that of
	// its rank: it is parked then. nil: the helper shares the core, if it is of policy pinwheel and may cost something.
	OnDemand func(on bool)
	// CPUs are the processors that the helper may use. If there is but one, it runs there, idle or
	// not. Empty stands for those that this process may use.
	CPUs        []int
	PinnedBytes func() int64       // now, of this process: decides which processes of a node get an idle core
	CommCPU     func() int         // where a communication thread runs, or helper.AnyCPU
	Profile     *ProfileOptions    // of policy pinwheel; nil: none
	Trained     *predictor.Trained // what policy pinwheel knows already, without a profile; nil: nothing
	// Procs has the Go runtime run at least n threads at a time. nil: that is the program's own to say, and bounds the
	// workers.
	Procs func(n int)

	// Tests wrap the predictor and the registrar. nil: as they are.
	WrapPredictor func(predictor.Predictor) predictor.Predictor
	WrapRegistrar func(helper.Registrar) helper.Registrar
}

// HasHelper reports whether a policy has a helper thread.
func HasHelper(policy string) bool { return policy == "pinwheel" || schedule.IsPaper(policy) }

// itemNs is what one DQ item and one RQ item cost the helper of policy pinwheel beside
// the registration itself.
const itemNs = 5_000 // 5 us

// StartHelper starts the helper thread if the policy has one and, unless the options
// say where it runs, the search for an idle core. If the thread can't be started it
// warns, and memory stays pinned. It reports whether there is a helper now.
func (e *Engine) StartHelper(o HelperOptions) bool {
	if !HasHelper(o.Policy) || o.IdlePolicy == "off" {
		return false
	}
	cpu := helper.AnyCPU
	if len(o.CPUs) == 1 {
		cpu = o.CPUs[0]
	}
	if err := fault.Contain(func() error { return e.startThread(&o, cpu) }); err != nil {
		e.Warn("helper", fmt.Sprintf("%v; going on without helper thread, memory stays pinned", err))
		return false
	}
	e.onDemand, e.cost = o.OnDemand, cmp.Or(o.Cost, schedule.DefaultCost)
	switch {
	case cpu != helper.AnyCPU:
		e.where = fmt.Sprintf("on processor %d", cpu)
		e.meter.place(helper.Placement{CPU: cpu, Helpers: 1})
	case o.IdlePolicy == IdlePolicyIgnore:
		e.where = "where the kernel puts it"
	default:
		e.where = "on an idle core (" + o.IdlePolicy + ")"
		if err := e.startPlacer(&o); err != nil {
			e.Warn("placer", fmt.Sprintf("%v; the kernel places the helper thread", err))
		}
	}
	return true
}

// NoCost is a HelperOptions.Cost of nothing: 0 stands for the default.
const NoCost = 1e-12

func (e *Engine) startThread(o *HelperOptions, cpu int) error {
	costs := cmp.Or(o.Costs, verbs.DefaultCosts)
	po := predictor.Options{Window: o.Window, Trained: o.Trained}
	e.procs = o.Procs
	var l *learner
	p, so, isPaper := schedule.NewPaper(o.Policy, po, costs)
	e.alone = isPaper // Li et al., CF'11, have one thread
	if !isPaper {
		so = schedule.SchedulerOptions{Costs: costs, ItemNs: itemNs, KeepUnknown: true, Cost: o.Cost}
		if o.Profile != nil {
			l = &learner{engine: e, opt: *o.Profile, options: po}
			p = l
		} else {
			p = predictor.NewPinwheel(po)
		}
	}
	scored := predictor.NewScored(wrapped(o.WrapPredictor, p))
	thread, err := helper.StartThread(helper.ThreadOptions{
		Decider:   schedule.NewScheduler(scored, so),
		Registrar: timedRegistrar{wrapped(o.WrapRegistrar, Registrar(o.Caches)), e.meter},
		Clock:     o.Clock,
		CPU:       cpu,
		Polls:     isPaper,
		Gone:      o.Caches.Gone,
		OnFault: func(f *fault.Fault) {
			e.Fault(f, "going on without helper thread, memory stays pinned"+
				" (or, should that come again, with plain registration)")
		},
	})
	if err == nil {
		e.helper, e.scored, e.learner = thread, scored, l
	}
	return err
}

func wrapped[T any](wrap func(T) T, inner T) T {
	if wrap == nil {
		return inner
	}
	return wrap(inner)
}

func (e *Engine) startPlacer(o *HelperOptions) error {
	policy, err := placement.ParseIdlePolicy(o.IdlePolicy)
	if err != nil {
		return err
	}
	e.placer, err = placement.StartPlacer(placement.PlacerOptions{
		Policy:  policy,
		Share:   o.Policy == "pinwheel" && o.Cost != NoCost,
		Bytes:   o.PinnedBytes,
		CommCPU: o.CommCPU,
		Apply:   e.placeHelper,
		Warn:    func(err error) { e.Warn("placer", err.Error()) },
		Allowed: o.CPUs,
		Node:    e.node.joined(),
	})
	return err
}

// placeHelper carries out what the Placer has decided.
func (e *Engine) placeHelper(p helper.Placement) {
	e.meter.place(p)
	if e.onDemand != nil {
		e.onDemand(p.Shared)
		p.Parked = p.Parked || p.Shared
	}
	if e.alone {
		p.Spares = 0
	}
	// A thread in a call of the provider keeps its P for up to 10 ms. Server and helper have one each.
	const others = 3
	if e.procs == nil {
		p.Spares = min(p.Spares, max(runtime.GOMAXPROCS(0)-others, 0))
	} else if p.Spares > 0 {
		e.procs(p.Spares + others)
	}
	e.helper.Place(p)
}

// Helped reports whether a helper was started. It may have stopped after a fault.
func (e *Engine) Helped() bool { return e.helper != nil }

// Attach makes the helper, if there is one, take events of uses from s.
func (e *Engine) Attach(s helper.Source) {
	if e.helper != nil {
		e.helper.Attach(s)
	}
}

// Detach makes the helper leave s alone, as helper.Thread.Detach does.
func (e *Engine) Detach(s helper.Source) {
	if e.helper != nil {
		e.helper.Detach(s)
	}
}

// HelperStats returns what the helper has done; nothing if there is none.
func (e *Engine) HelperStats() helper.ThreadStats {
	if e.helper == nil {
		return helper.ThreadStats{}
	}
	return e.helper.Stats()
}

// Accuracy returns the accuracy of the helper's predictions so far; none if there is no helper.
func (e *Engine) Accuracy() predictor.Accuracy {
	if e.scored == nil {
		return predictor.Accuracy{}
	}
	return e.scored.Accuracy()
}
