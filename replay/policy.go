package replay

import (
	"fmt"
	"slices"
	"strings"

	"pinwheel/helper"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// Names of policies.
const (
	LeavePinned = "leave-pinned"
	OnDemand    = "on-demand"
	Bounce      = "bounce"
	Pipeline    = "pipeline"
	LRU         = "lru"
	Paper       = "paper"
	Pinwheel    = "pinwheel"
	Oracle      = "oracle"
	// Two predictors to compare with, under the scheduler of Paper.
	Periodicity = "periodicity"
	Last        = "last"
)

// Policies are all policies that a comparison can run, in the order of its table.
func Policies() []string {
	return []string{LeavePinned, OnDemand, Bounce, Pipeline, LRU, Periodicity, Last, Paper, Pinwheel, Oracle}
}

// CheckPolicies reports the first name that is none.
func CheckPolicies(names []string) error {
	for _, n := range names {
		if !slices.Contains(Policies(), n) {
			return fmt.Errorf("unknown policy %q (choose from %s)", n, strings.Join(Policies(), ", "))
		}
	}
	return nil
}

// helped tells the policies with a helper thread.
func helped(policy string) bool {
	return slices.Contains([]string{Periodicity, Last, Paper, Pinwheel}, policy)
}

// defaultHelper makes the predictor and scheduler of a policy.
func defaultHelper(policy string, o *Options) (predictor.Predictor, helper.SchedulerOptions, error) {
	return nil, helper.SchedulerOptions{}, fmt.Errorf("policy %q has no helper", policy)
}

// install gives a rank its policy.
func (e *engine) install(r *rank, policy string, late int64) error {
	n := len(e.ranks)
	st := &r.stats
	r.pins = &pins{sinks: []*usage{&r.usage}, wake: func(at int64) { e.agenda.set(e.actor(pinActor, r.id), at) }}
	switch policy {
	case Bounce:
		r.path = &bouncePath{stats: st, bytesPerNs: e.opt.Network.CopyPerNs}
		r.pins.change(0, bouncePool(e.opt.BounceBytes), 1)
		return nil
	case Pipeline:
		chunk := mem.Addr(e.opt.PipelineBytes)
		r.path = &pipelinePath{costs: e.opt.Costs, stats: st, pins: r.pins, chunkBytes: chunk}
		return nil
	case Oracle:
		r.usage.lateNs = late
		r.path = &oraclePath{costs: e.opt.Costs, stats: st, pins: r.pins, lateNs: late, until: map[mem.Range]int64{}}
		return nil
	}
	_ = n
	m := &meter{costs: e.opt.Costs, pins: r.pins, readyNs: map[uint64]int64{}}
	if policy == noStall {
		m.costs = verbs.Costs{}
	}
	frames := &frameTable{stream: r.prog.stream}
	c := &cachedPath{cache: newStandin(m), meter: m, stats: st, hitNs: e.opt.LookupNs, demand: policy == OnDemand,
		known: map[mem.RegionID]*regionInfo{}, frames: frames.at}
	r.path = c
	if !helped(policy) {
		return nil
	}
	pred, so, err := e.opt.NewHelper(policy, e.opt)
	if err != nil {
		return err
	}
	c.errors = newPredictionErrors(pred)
	c.helper = &virtualHelper{sched: helper.NewScheduler(c.errors, so), path: c, asleep: true,
		wake: func(at int64) { e.agenda.set(e.actor(helperActor, r.id), at) }, dqNs: e.opt.DQItemNs, rqNs: e.opt.RQItemNs}
	r.helper = c.helper
	return nil
}

const noStall = "no-stall"
