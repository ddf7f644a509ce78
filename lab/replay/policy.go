package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/regcache"
	"pinwheel/schedule"
)

// Names of policies.
const (
	LeavePinned = "leave-pinned"       // register at first use, never release
	OnDemand    = "on-demand"          // register and deregister around every transfer
	Bounce      = "bounce"             // copy through preregistered buffers
	Pipeline    = "pipeline"           // register and send chunk by chunk, deregister after
	LRU         = "lru"                // leave-pinned under a budget
	Periodicity = "periodicity"        // the helper of paper with the periodicity detector
	Last        = "last"               // the helper of paper, predicting the last interval again
	Paper       = schedule.Paper       // the helper thread of Li et al., CF'11
	PaperStrict = schedule.PaperStrict // the same, with its inequality 1 as printed (predictor.Paper)
	Pinwheel    = "pinwheel"           // ours
	Oracle      = "oracle"             // clairvoyant: the limit for memory at zero stall

	// Clairvoyant is pinwheel with perfect predictions: what as many workers as it has can do. A replay has it on request.
	Clairvoyant = "clairvoyant"
	// PipelinePinned is pipeline with "leave pinned" of Open MPI: registered chunk by chunk at the first use, and kept. A
	// replay has it on request.
	PipelinePinned = "pipeline-pinned"
)

// Policies are the policies that a replay has by default, in the order of a table.
func Policies() []string {
	return []string{LeavePinned, OnDemand, Bounce, Pipeline, LRU, Periodicity, Last, Paper, PaperStrict, Pinwheel, Oracle}
}

// AllPolicies are these, and those that a replay has on request.
func AllPolicies() []string { return append(Policies(), Clairvoyant, PipelinePinned) }

// CheckPolicies reports the first name that is none.
func CheckPolicies(names []string) error {
	for _, n := range names {
		if all := AllPolicies(); !slices.Contains(all, n) {
			return fmt.Errorf("unknown policy %q (choose from %s)", n, strings.Join(all, ", "))
		}
	}
	return nil
}

// helped tells the policies with a helper thread.
func helped(policy string) bool {
	return policy == Periodicity || policy == Last || schedule.IsPaper(policy) || policy == Pinwheel || policy == Clairvoyant
}

// hasCost tells the policies whose results depend on Options.Cost.
func hasCost(policy string) bool { return policy == Pinwheel || policy == Clairvoyant }

// BudgetOf returns how many bytes a policy may keep pinned on one rank.
func (o *Options) BudgetOf(policy string) int64 {
	if policy == LRU || o.BudgetHelped && helped(policy) {
		return o.BudgetBytes
	}
	return mem.Unlimited
}

// DefaultHelper makes the predictor of a policy with a helper, and the
// options of its Scheduler.
func DefaultHelper(policy string, o *Options) (predictor.Predictor, schedule.SchedulerOptions, error) {
	so := schedule.SchedulerOptions{Costs: o.Costs, ItemNs: o.DQItemNs + o.RQItemNs}
	window := predictor.Options{Window: o.Window, Trained: o.trained}
	if p, so, ok := schedule.NewPaper(policy, window, o.Costs); ok {
		return p, so, nil
	}
	switch policy {
	case Pinwheel:
		window.Without, so.Without = o.Without, o.Without
		so.KeepUnknown, so.Workers, so.Cost = true, o.Workers, o.Cost
		return predictor.NewPinwheel(window), so, nil
	case Last:
		return predictor.NewLast(), so, nil
	case Periodicity:
		return NewPeriodicity(o.PeriodicityWindow), so, nil
	}
	return nil, so, fmt.Errorf("policy %q has no helper", policy)
}

// install gives every rank its policy. lateNs is what registering the largest
// buffer takes, which only the oracle needs to know.
func (e *engine) install(policy string, lateNs int64) error {
	e.pipelined = policy == Pipeline
	for _, r := range e.ranks {
		switch policy {
		case Bounce:
			r.path = &bouncePath{stats: &r.stats, bytesPerNs: e.opt.Network.CopyBytesPerNs}
			r.pages.Pin(0, BouncePool(e.opt.BounceBytes))
		case Pipeline:
			r.path = &pipelinePath{costs: e.opt.Costs, stats: &r.stats, pages: r.pages, chunkBytes: e.opt.PipelineBytes}
		case Oracle:
			r.usage.LateNs = lateNs
			r.path = &oraclePath{costs: e.opt.Costs, pages: r.pages, stats: &r.stats, lateNs: lateNs, until: map[mem.Range]int64{}}
		default:
			if err := e.installCached(r, policy); err != nil {
				return err
			}
		}
	}
	if e.opt.Cores != nil && helped(policy) {
		return e.installNodes(policy == Pinwheel && e.opt.isFull())
	}
	return nil
}

func (e *engine) installCached(r *rank, policy string) error {
	provider := newVirtualProvider(e.opt.Costs, r.pages)
	budget := e.opt.BudgetOf(policy)
	provider.budgeted = budget != mem.Unlimited
	if policy == PipelinePinned {
		provider.registerNs = e.opt.pipelinedNs
	}
	cache, err := regcache.New(provider, regcache.Options{Confined: true, MaxBytes: budget})
	if err != nil {
		return err
	}
	local, err := cache.Thread()
	if err != nil {
		return errors.Join(err, cache.Close())
	}
	if e.opt.Journal != nil {
		r.journal = e.opt.Journal(policy, r.id)
		provider.journal = r.journal
	}
	c := &cachedPath{
		cache: cache, local: local, provider: provider, stats: &r.stats, lookupNs: e.opt.LookupNs, demand: policy == OnDemand,
		bounce: bouncePath{stats: &r.stats, bytesPerNs: e.opt.Network.CopyBytesPerNs},
		sites:  callSites{stream: r.prog.stream}, unused: map[mem.RegionID]bool{}, openedNs: never,
	}
	if helped(policy) && policy != Clairvoyant {
		c.watchNs = e.opt.WatchNs
	}
	r.path = c
	if policy == LeavePinned {
		c.log = r.log
	}
	if !helped(policy) || e.opt.Cores == nil && e.opt.isFull() && policy != Pinwheel {
		return nil
	}
	p, so, err := e.newHelper(r, policy)
	if err != nil {
		return err
	}
	if l, ok := p.(learner); ok && e.opt.Learned != nil {
		r.learned = func() { e.opt.Learned(r.id, l.Trained()) }
	}
	if r.journal != nil {
		p = &journaled{Predictor: p, journal: r.journal, nowNs: &e.now}
	}
	r.scored = predictor.NewScored(p)
	c.helper = newVirtualHelper(schedule.NewScheduler(r.scored, so), c, e.opt, e.opt.Polls || schedule.IsPaper(policy) || policy == Clairvoyant)
	c.helper.wake = func(at int64) {
		a := e.actor(helperActor, r.id)
		e.queue.set(a, min(at, e.queue.at[a]))
	}
	if e.opt.Cores == nil && e.opt.isFull() {
		c.helper.limit(e.opt.HelperShare, 0)
	}
	r.helper = c.helper
	return nil
}

// newHelper makes what decides for the helper of a rank.
func (e *engine) newHelper(r *rank, policy string) (predictor.Predictor, schedule.SchedulerOptions, error) {
	if policy != Clairvoyant {
		return e.opt.NewHelper(policy, e.opt.forRank(r.id))
	}
	_, so, err := e.opt.NewHelper(Pinwheel, e.opt.forRank(r.id))
	return newClairvoyant(r.log), so, err
}
