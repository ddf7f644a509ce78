package replay

// counters are what one rank counts as it goes.
type counters struct {
	Needs        int64 `json:"needs"`         // uses of a buffer at or above the threshold
	FirstRegs    int64 `json:"first_regs"`    // registered by the communication path: first use of a range
	LateRegs     int64 `json:"late_regs"`     // the same, later
	LateWaits    int64 `json:"late_waits"`    // needs that waited for a registration of the helper under way
	HelperRegs   int64 `json:"helper_regs"`   // by the helper
	HelperDeregs int64 `json:"helper_deregs"` // by the helper
	WastedRegs   int64 `json:"wasted_regs"`   // by the helper, and released again without a use
	StallNs      int64 `json:"stall_ns"`      // of the communication path: lookup, waiting for and doing registration
	HelperCPUNs  int64 `json:"helper_cpu_ns"`
}

func (c *counters) add(o *counters) {
	c.Needs += o.Needs
	c.FirstRegs += o.FirstRegs
	c.LateRegs += o.LateRegs
	c.LateWaits += o.LateWaits
	c.HelperRegs += o.HelperRegs
	c.HelperDeregs += o.HelperDeregs
	c.WastedRegs += o.WastedRegs
	c.StallNs += o.StallNs
	c.HelperCPUNs += o.HelperCPUNs
}

// AllRanks is the Rank of a result that sums up all ranks of a trace.
const AllRanks = -1

// Result is one policy on one rank of one trace, or on all of them: then
// bytes and counts are sums over the ranks, and run_ns is the longest.
type Result struct {
	Trace    string   `json:"trace"`
	Rank     int      `json:"rank"`
	Policy   string   `json:"policy"`
	Provider string   `json:"provider"`
	Mode     string   `json:"mode"`
	Timeline Timeline `json:"timeline"`

	PeakPinnedBytes int64   `json:"peak_pinned_bytes"`
	AvgPinnedBytes  float64 `json:"avg_pinned_bytes"`
	counters
	RunNs        int64    `json:"run_ns"`
	Slowdown     *float64 `json:"slowdown,omitempty"`
	Predictions  int64    `json:"predictions"`
	Err05        *float64 `json:"err_0_5,omitempty"`
	Err5         *float64 `json:"err_5,omitempty"`
	CapturedAvg  *float64 `json:"captured_avg,omitempty"`
	CapturedPeak *float64 `json:"captured_peak,omitempty"`
	Torn         bool     `json:"torn,omitempty"`
	TraceEvents  int64    `json:"trace_events"`
	below05, in5 int64
	pinnedUsage  usage
	errorsBins   [errorBins]int64
}
