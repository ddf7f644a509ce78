package micro

import (
	"context"

	"pinwheel/lab/replay"
)

// policies are the ways to register that the papers compare, and ours.
var policies = []string{replay.Bounce, replay.Pipeline, replay.PipelinePinned, replay.OnDemand, replay.LeavePinned,
	replay.Paper, replay.Pinwheel}

// Options say what to replay. All are needed.
type Options struct {
	Sizes  []uint64  // of messages, in bytes
	GbPerS []float64 // bandwidths of networks, each of which has everything replayed on it
	Costs  []float64 // policy pinwheel is replayed with each; see replay.Options.Cost
	Replay replay.Options
}

// Result is one policy with one size of messages. Times and memory are those of rank 0, which is the one that sends in
// Overlap.
type Result struct {
	Benchmark Benchmark `json:"benchmark"`
	Rounds    int       `json:"rounds"`
	Fresh     bool      `json:"fresh"` // no buffer is used in two rounds
	GbPerS    float64   `json:"network_gb_s"`
	Provider  string    `json:"provider"` // of the costs of registration
	Policy    string    `json:"policy"`
	Cost      float64   `json:"cost,omitempty"` // of policy pinwheel
	Bytes     uint64    `json:"bytes"`
	// MessageNs is what a message takes: the time of the run without the computing, by the number of messages.
	MessageNs       float64 `json:"message_ns"`
	MBPerS          float64 `json:"mb_s"` // millions of bytes a second
	Slowdown        float64 `json:"slowdown"`
	PeakPinnedBytes int64   `json:"peak_pinned_bytes"`
	AvgPinnedBytes  float64 `json:"avg_pinned_bytes"`
	Needs           int64   `json:"needs"`
	LateUses        int64   `json:"late_uses"` // of the policies that register chunk by chunk: chunks
}

// Compare replays the benchmarks.
func Compare(ctx context.Context, o Options) (all []Result, err error) {
	for _, gb := range o.GbPerS {
		for _, j := range jobs {
			for _, j.bytes = range o.Sizes {
				rs, err := o.compare(ctx, gb, j)
				if err != nil {
					return nil, err
				}
				all = append(all, rs...)
			}
		}
	}
	return all, nil
}

func (o *Options) compare(ctx context.Context, gb float64, j job) (all []Result, err error) {
	ro := o.Replay
	ro.Policies, ro.CostCurve = policies, o.Costs
	ro.Network = replay.DefaultNetwork()
	ro.Network.BytesPerNs = gb / 8
	rs, err := replay.CompareJob(ctx, ro, j)
	if err != nil {
		return nil, err
	}
	for i := range rs {
		if rs[i].Rank == 0 {
			all = append(all, j.result(gb, &rs[i]))
		}
	}
	return all, nil
}

func (j job) result(gb float64, r *replay.Result) Result {
	messages, computedNs := j.messages()
	ns := float64(r.RunNs-computedNs) / float64(messages)
	return Result{
		Benchmark: j.benchmark, Rounds: j.rounds, Fresh: j.fresh, GbPerS: gb, Provider: r.Provider, Policy: r.Policy,
		Cost: r.Cost, Bytes: j.bytes, MessageNs: ns, MBPerS: float64(j.bytes) / ns * 1e3, Slowdown: *r.Slowdown,
		PeakPinnedBytes: r.PeakPinnedBytes, AvgPinnedBytes: r.AvgPinnedBytes, Needs: r.Needs, LateUses: r.LateUses(),
	}
}
