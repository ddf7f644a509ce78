package replay

import (
	"cmp"
	"fmt"
	"math"
	"runtime"
	"slices"

	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/schedule"
	"pinwheel/trace"
	"pinwheel/verbs"
)

// Timeline is the clock that a replay follows.
type Timeline string

const (
	// Dedicated replays all ranks together as on cores of their own: compute
	// phases last their processor time, messages are matched, collectives
	// synchronise.
	Dedicated Timeline = "dedicated"
	// Recorded replays every rank by its recorded wall clock. A stall delays
	// everything that follows on the same rank, and no other rank.
	Recorded Timeline = "recorded"
)

// Options configure a replay. The zero value of a field stands for its default.
type Options struct {
	Policies []string // default: all of Policies()
	Timeline Timeline // default: Dedicated

	// ThresholdBytes is the smallest buffer that is registered; 16 KiB.
	ThresholdBytes uint64
	// BudgetBytes is what policy lru may keep pinned on one rank; 64 MiB.
	BudgetBytes int64
	// BudgetHelped binds the policies with a helper to BudgetBytes, too.
	BudgetHelped bool
	// AlltoallPairwise lets alltoall and alltoallv exchange with one member
	// at a time. Otherwise all slices are posted at once.
	AlltoallPairwise bool
	// Nodes groups ranks that share a node. What they send each other goes
	// through shared memory and needs no registration; there is a Result for
	// what they pin together. Ranks not named have a node of their own.
	Nodes [][]int

	// Cores, if set, are the idle cores of each node, which the helpers of its ranks share. Otherwise every
	// helper has a core of its own.
	Cores *IdleCores

	// Network is the machine between the ranks; DefaultNetwork().
	Network Network
	// Costs are what registration takes, for the communication path and the
	// helper alike; 16 us + 0.25 us a page to register, 5 us + 0.02 us a page
	// to deregister.
	Costs verbs.Costs
	// Provider names the calibration of Costs in results; "sim".
	Provider string
	// LookupNs is what the communication path pays for finding a buffer in
	// the cache; 50 ns.
	LookupNs int64
	// DQItemNs and RQItemNs are what an event and an action cost the helper
	// besides registration itself; 1 us and 0.5 us.
	DQItemNs, RQItemNs int64
	// DQEntries is the capacity of DQ; 1024.
	DQEntries int
	// HelperShare says that no core is idle: the share of its rank's time, from 0 to 1, that uses on demand may cost
	// under policy pinwheel (schedule.Demand). Under other policies there is no helper then, and memory stays
	// registered. 0 and 1 stand for a core of its own, without a limit.
	HelperShare float64
	// Cost is the most that late uses may cost a rank under policy pinwheel, as a share of its time, from 0 to 1;
	// schedule.SchedulerOptions.Cost. 0 stands for schedule.DefaultCost. Under HelperShare it takes the place of that
	// share, unless it is 0.
	Cost float64
	// CostCurve, if set, are values that take the place of Cost: Compare replays a policy whose results depend on it
	// once for each.
	CostCurve []float64
	// WatchNs is how long it takes from the first use of a rank on until changes of mappings are noticed: so long, policies
	// with a helper register for each use. Clairvoyant keeps what it registers, as leave-pinned does.
	WatchNs int64
	// Workers is how many registrations the helper of policy pinwheel may have under way at the same time, each on an
	// idle core of its own; 1.
	Workers int
	// Window is the context window of the predictors that have one: how many
	// preceding uses belong to a context. NoWindow for none; 2.
	Window int
	// PeriodicityWindow is how many uses policy periodicity compares; 64.
	PeriodicityWindow int
	// BounceBytes is the pool of policy bounce on every rank; 4 MiB.
	BounceBytes uint64
	// PipelineBytes is the chunk of policy pipeline; 1 MiB, the default of
	// btl_openib_rdma_pipeline_frag_size in Open MPI.
	PipelineBytes uint64

	// SeriesFromNs and SeriesToNs are the window of Result.Pinned; the whole run.
	SeriesFromNs, SeriesToNs int64

	// NewHelper makes the predictor and the scheduler's options for a policy
	// with a helper; DefaultHelper. It is called once for every rank, from
	// several goroutines.
	NewHelper func(policy string, o *Options) (predictor.Predictor, schedule.SchedulerOptions, error)
	// Without are ideas of policy pinwheel to leave out.
	Without predictor.Idea
	// Journal, if set, is called once for every rank of a policy that keeps registrations in the cache, from
	// several goroutines, and returns where to write down what happens; nil for nowhere.
	Journal func(policy string, rank int) *Journal
	// Trained, if set, returns what the helper of a rank knows from an earlier run under policy pinwheel; nil for
	// nothing. Learned, if set, gets what it knows at the end. Both are called from several goroutines.
	Trained func(rank int) *predictor.Trained
	Learned func(rank int, l predictor.Trained)
	trained *predictor.Trained // of the rank that a helper is made for

	// Polls makes helpers take each event at once, instead of sleeping as schedule.Pacer says. Those of policies
	// paper and paper-strict always do: Li et al., CF'11, give them a core of their own, where they compare the pointers of
	// DQ all the time.
	Polls bool
	// Parallel is the number of policies replayed at one time; GOMAXPROCS.
	Parallel int
	// Progress, if set, is called now and then, from several goroutines, with the records
	// that one policy has replayed since it last called. In real time it counts runs.
	Progress func(n int64)
}

// NoWindow is the Options.Window of a predictor without context.
const NoWindow = -1

// EnsureDefaults fills in what is unset.
func (o *Options) EnsureDefaults() {
	if len(o.Policies) == 0 {
		o.Policies = Policies()
	}
	o.Timeline = cmp.Or(o.Timeline, Dedicated)
	if o.Cores != nil {
		o.Cores = o.Cores.withDefaults()
	}
	o.ThresholdBytes = cmp.Or(o.ThresholdBytes, 16<<10)
	o.BudgetBytes = cmp.Or(o.BudgetBytes, 64<<20)
	o.Network = cmp.Or(o.Network, DefaultNetwork())
	o.Costs = cmp.Or(o.Costs, verbs.Costs{
		Register: verbs.Cost{PerPageNs: 250, FixedNs: 16_000}, Deregister: verbs.Cost{PerPageNs: 20, FixedNs: 5_000},
	})
	o.Provider = cmp.Or(o.Provider, "sim")
	o.LookupNs = cmp.Or(o.LookupNs, 50)
	o.DQItemNs = cmp.Or(o.DQItemNs, 1000)
	o.RQItemNs = cmp.Or(o.RQItemNs, 500)
	o.DQEntries = cmp.Or(o.DQEntries, 1024)
	o.Workers = cmp.Or(o.Workers, 1)
	o.Window = cmp.Or(o.Window, 2)
	o.PeriodicityWindow = cmp.Or(o.PeriodicityWindow, defaultPeriodicityWindow)
	o.BounceBytes = cmp.Or(o.BounceBytes, 4<<20)
	o.PipelineBytes = mem.Range{End: mem.Addr(cmp.Or(o.PipelineBytes, 1<<20))}.PageAligned().Len()
	o.SeriesToNs = cmp.Or(o.SeriesToNs, math.MaxInt64)
	if o.NewHelper == nil {
		o.NewHelper = DefaultHelper
	}
	o.Parallel = cmp.Or(o.Parallel, runtime.GOMAXPROCS(0))
}

// Check reports options that no trace can be replayed with.
func (o Options) Check() error {
	o.EnsureDefaults()
	if err := CheckPolicies(o.Policies); err != nil {
		return err
	}
	if err := o.Network.check(); err != nil {
		return err
	}
	if o.Cores != nil {
		if err := o.Cores.check(); err != nil {
			return err
		}
	}
	if o.Timeline != Dedicated && o.Timeline != Recorded {
		return fmt.Errorf("unknown timeline %q (choose from %s, %s)", o.Timeline, Dedicated, Recorded)
	}
	if !(o.HelperShare >= 0 && o.HelperShare <= 1) {
		return fmt.Errorf("helper share %v: it goes from 0 to 1", o.HelperShare)
	}
	for _, cost := range append([]float64{o.Cost}, o.CostCurve...) {
		if !(cost >= 0 && cost <= 1) {
			return fmt.Errorf("cost %v: it goes from 0 to 1", cost)
		}
	}
	if o.Workers < 1 || o.Workers > 1 && (o.Cores != nil || o.isFull()) {
		return fmt.Errorf("%d workers: there must be one at least, and more than one need idle cores of their own", o.Workers)
	}
	return nil
}

// isFull reports whether helpers have no idle core.
func (o *Options) isFull() bool { return o.HelperShare > 0 && o.HelperShare < 1 }

// CheckTrace reports what makes it impossible to replay a trace with these options.
func (o *Options) CheckTrace(file *trace.File) error {
	if err := o.Check(); err != nil {
		return err
	}
	ranks := file.Header().Ranks
	if have := len(file.Ranks()); have < ranks {
		return fmt.Errorf("the trace has %d of %d ranks: all are needed to match their messages", have, ranks)
	}
	return o.checkNodes(ranks)
}

// checkNodes reports nodes that a run of so many ranks can't have.
func (o *Options) checkNodes(ranks int) error {
	seen := map[int]bool{}
	for _, r := range slices.Concat(o.Nodes...) {
		if r < 0 || r >= ranks || seen[r] {
			return fmt.Errorf("node layout: rank %d is named twice or not in this trace of %d ranks", r, ranks)
		}
		seen[r] = true
	}
	return nil
}

// Passes is how many of Options.Progress there are: one for each policy, or each of CostCurve.
func (o *Options) Passes() int { return len(o.passes()) }

// costsOf returns the values of Cost that a policy is to be replayed with: 0 alone if it does not depend on it.
func (o *Options) costsOf(policy string) []float64 {
	switch {
	case !hasCost(policy):
		return []float64{0}
	case len(o.CostCurve) > 0:
		return o.CostCurve
	}
	return []float64{o.Cost}
}

// at returns the options with another Cost, which is that of uses on demand, too, if no core is idle.
func (o Options) at(cost float64) Options {
	o.Cost = cost
	if cost > 0 && o.HelperShare > 0 && o.HelperShare < 1 {
		o.HelperShare = cost
	}
	return o
}

// pipelineNsPerByte is the rate at which chunks are registered.
func (o *Options) pipelineNsPerByte() float64 {
	return float64(o.Costs.Register.Ns(o.PipelineBytes/mem.PageSize)) / float64(o.PipelineBytes)
}

// pipelinedNs is what a transfer waits for if its buffer is registered chunk by chunk meanwhile: the first chunk, and of the
// others what takes longer than sending a chunk.
func (o *Options) pipelinedNs(pages uint64) int64 {
	chunk := o.PipelineBytes / mem.PageSize
	if pages <= chunk {
		return o.Costs.Register.Ns(pages)
	}
	chunkNs := o.Costs.Register.Ns(chunk)
	others := int64((pages+chunk-1)/chunk) - 1
	return chunkNs + others*max(0, chunkNs-int64(o.Network.wire(o.PipelineBytes)))
}

// nodes returns the ranks of every node: those of Nodes, then one for each rank that is not named.
func (o *Options) nodes(ranks int) [][]int {
	all := slices.Clone(o.Nodes)
	for r, node := range o.nodeOf(ranks) {
		if node >= len(o.Nodes) {
			all = append(all, []int{r})
		}
	}
	return all
}

// nodeOf returns every rank's node.
func (o *Options) nodeOf(ranks int) []int {
	node := make([]int, ranks)
	for r := range node {
		node[r] = len(o.Nodes) + r
	}
	for i, members := range o.Nodes {
		for _, r := range members {
			node[r] = i
		}
	}
	return node
}
