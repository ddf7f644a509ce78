package replay

import (
	"cmp"

	"pinwheel/helper"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// Timeline is the clock that a replay follows.
type Timeline string

const (
	// Dedicated replays all ranks together as on cores of their own: compute
	// phases last their processor time, messages are matched.
	Dedicated Timeline = "dedicated"
	// Recorded replays every rank by its recorded wall clock.
	Recorded Timeline = "recorded"
)

// Options configure Compare. The zero value of every field means its default.
type Options struct {
	// Policies to run, in this order; see Policies. Default: all.
	Policies []string
	// Timeline is Dedicated by default.
	Timeline Timeline
	// ThresholdBytes is the smallest buffer that is registered; 16 KiB.
	ThresholdBytes uint64
	// BudgetBytes limits what policy lru keeps pinned on one rank.
	BudgetBytes int64
	// AlltoallPairwise lets alltoall exchange with one member at a time.
	AlltoallPairwise bool
	// Network is the machine between ranks; DefaultNetwork.
	Network Network
	// Costs are what registration takes.
	Costs verbs.Costs
	// BounceBytes is the pool of policy bounce on every rank; 4 MiB.
	BounceBytes uint64
	// PipelineBytes is the chunk of policy pipeline; 1 MiB, the default of
	// Open MPI's btl_openib_rdma_pipeline_frag_size.
	PipelineBytes uint64
	// LookupNs is what the communication path pays for finding a buffer.
	LookupNs int64
	// DQItemNs and RQItemNs are what an event and an action cost the helper
	// besides the registration itself.
	DQItemNs, RQItemNs int64
	// NewHelper makes the predictor and scheduler options of a policy with a
	// helper. The default knows those of Policies.
	NewHelper func(policy string, o *Options) (predictor.Predictor, helper.SchedulerOptions, error)

	progress func(records int64)
}

// EnsureDefaults fills in what is unset.
func (o *Options) EnsureDefaults() {
	o.Timeline = cmp.Or(o.Timeline, Dedicated)
	o.ThresholdBytes = cmp.Or(o.ThresholdBytes, 16<<10)
	if o.Network == (Network{}) {
		o.Network = DefaultNetwork()
	}
	if o.Costs == (verbs.Costs{}) {
		o.Costs = verbs.Costs{Register: verbs.Cost{PerPageNs: 250, FixedNs: 16000}, Deregister: verbs.Cost{PerPageNs: 20, FixedNs: 5000}}
	}
	o.LookupNs = cmp.Or(o.LookupNs, 50)
	o.DQItemNs = cmp.Or(o.DQItemNs, 1000)
	o.BounceBytes = cmp.Or(o.BounceBytes, 4<<20)
	o.PipelineBytes = cmp.Or(o.PipelineBytes, 1<<20)
	if o.NewHelper == nil {
		o.NewHelper = defaultHelper
	}
	o.RQItemNs = cmp.Or(o.RQItemNs, 500)
}
