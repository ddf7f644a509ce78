package replay

import (
	"pinwheel/internal/usage"
	"pinwheel/predictor"
)

// Counts are what one policy counts on one rank.
type Counts struct {
	Needs        int64 `json:"needs"`         // uses of a buffer of the threshold or more
	FirstRegs    int64 `json:"first_regs"`    // done by the communication path: first use of a range
	LateRegs     int64 `json:"late_regs"`     // the same for any later use
	LateWaits    int64 `json:"late_waits"`    // needs that waited for a registration of the helper
	HelperRegs   int64 `json:"helper_regs"`   // done by the helper
	HelperDeregs int64 `json:"helper_deregs"` // done by the helper
	WastedRegs   int64 `json:"wasted_regs"`   // done by the helper, and released again without a use
	Unregistered int64 `json:"unregistered"`  // uses that found no room under the budget and were copied instead
	LostUses     int64 `json:"lost_uses"`     // that the helper did not hear of: DQ overran
	Predictions  int64 `json:"predictions"`   // needs for which a prediction was in force
	StallNs      int64 `json:"stall_ns"`      // of the communication path: lookup, waiting for and doing registration; for bounce, copying
	HelperCPUNs  int64 `json:"helper_cpu_ns"`
	// What a cache would have spared, as report.Cost has it: of StallNs, registering again and waiting for the helper;
	// uses on demand, with what the helper did for them.
	AgainNs  int64 `json:"again_ns"`
	WaitNs   int64 `json:"wait_ns"`
	DemandNs int64 `json:"demand_ns,omitempty"`
}

// LateUses are the needs after the first of a range whose buffer was not registered in time: the communication path
// registered it again, or waited for a registration under way. report.Rank counts them so, too.
func (c *Counts) LateUses() int64 { return c.LateRegs + c.LateWaits }

// LateShare is the share of the needs after the first that were late, from 0 to 1.
func (c *Counts) LateShare() float64 {
	return float64(c.LateUses()) / float64(max(c.Needs-c.FirstRegs, 1))
}

func (c *Counts) add(o *Counts, times int64) {
	c.Needs += times * o.Needs
	c.FirstRegs += times * o.FirstRegs
	c.LateRegs += times * o.LateRegs
	c.LateWaits += times * o.LateWaits
	c.HelperRegs += times * o.HelperRegs
	c.HelperDeregs += times * o.HelperDeregs
	c.WastedRegs += times * o.WastedRegs
	c.Unregistered += times * o.Unregistered
	c.LostUses += times * o.LostUses
	c.Predictions += times * o.Predictions
	c.StallNs += times * o.StallNs
	c.HelperCPUNs += times * o.HelperCPUNs
	c.AgainNs += times * o.AgainNs
	c.WaitNs += times * o.WaitNs
	c.DemandNs += times * o.DemandNs
}

// AllRanks is the Rank of a Result over several ranks.
const AllRanks = -1

// Result is one policy on one rank of one trace. With Rank AllRanks it is the
// sum over all ranks, where run_ns is that of the longest. With a Node it is
// what the ranks of that node pin together at one time.
//
// Ratios are nil where they mean nothing: captured_* where the bound saves
// nothing, err_* without predictions.
type Result struct {
	Trace    string   `json:"trace"`
	Rank     int      `json:"rank"`
	Node     *int     `json:"node,omitempty"`
	Policy   string   `json:"policy"`
	Provider string   `json:"provider"`
	Mode     string   `json:"mode"`
	Timeline Timeline `json:"timeline"`
	// HelperShare is Options.HelperShare for a policy with a helper.
	HelperShare float64 `json:"helper_share,omitempty"`
	// Cost is Options.Cost, or the one of Options.CostCurve, for a policy that depends on it; 0 for the default.
	Cost float64 `json:"cost,omitempty"`
	// PriceNs is what saving a MiB for a second cost in the end, on the rank where it cost most (report.Cost).
	PriceNs float64 `json:"price_ns,omitempty"`
	// Workers is Options.Workers for a policy with several.
	Workers int `json:"workers,omitempty"`

	PeakPinnedBytes int64   `json:"peak_pinned_bytes"`
	AvgPinnedBytes  float64 `json:"avg_pinned_bytes"`
	Counts
	RunNs        int64    `json:"run_ns"`
	Slowdown     *float64 `json:"slowdown"` // to leave-pinned
	Err05        *float64 `json:"err_0_5"`
	Err5         *float64 `json:"err_5"`
	CapturedAvg  *float64 `json:"captured_avg"`
	CapturedPeak *float64 `json:"captured_peak"`
	TraceEvents  int64    `json:"trace_events"`   // records replayed; in real time, acquires and releases
	Torn         bool     `json:"torn,omitempty"` // the trace ends before finalize

	*RealRun
	*Sharing // of the helpers, with Options.Cores

	// Pinned is pinned memory over time, Errors the prediction errors, both for figures.
	Pinned usage.Series       `json:"-"`
	Errors predictor.Accuracy `json:"-"`
}

// RealRun is what only a replay in real time has.
type RealRun struct {
	// Version is the Pinwheel that ran. Real runs are kept in files.
	Version string  `json:"version"`
	Scale   float64 `json:"scale"` // of the timeline
	// Pairs is the number of runs, each beside one of leave-pinned. The Result
	// is the run with the median run time, slowdown the median over pairs.
	Pairs       int     `json:"pairs"`
	SlowdownMin float64 `json:"slowdown_min"`
	SlowdownMax float64 `json:"slowdown_max"`
	// VMSamples counts comparisons of the kernel's count of pinned and locked
	// pages with ours, VMDiffPages is the largest difference.
	VMSamples   int64 `json:"vm_pin_samples"`
	VMDiffPages int64 `json:"vm_pin_diff_pages"`
	// Profile: policy pinwheel began with what an earlier run had learned.
	Profile bool `json:"profile,omitempty"`
}

// Relate sets the fields of r that compare it with leave-pinned (base) and with
// the clairvoyant bound.
func (r *Result) Relate(base, bound *Result) {
	r.Slowdown = ratio(float64(r.RunNs), float64(base.RunNs))
	r.CapturedAvg = ratio(base.AvgPinnedBytes-r.AvgPinnedBytes, base.AvgPinnedBytes-bound.AvgPinnedBytes)
	r.CapturedPeak = ratio(float64(base.PeakPinnedBytes-r.PeakPinnedBytes), float64(base.PeakPinnedBytes-bound.PeakPinnedBytes))
	r.Err05 = ratio(float64(r.Errors.Below05), float64(r.Predictions))
	r.Err5 = ratio(float64(r.Errors.Below5), float64(r.Predictions))
}

func ratio(a, b float64) *float64 {
	if b == 0 {
		return nil
	}
	q := a / b
	return &q
}
