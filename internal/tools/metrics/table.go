package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"pinwheel/internal/tools/monitor"
)

// namespace begins the name of every metric.
const namespace = "pinwheel"

// metric is one metric of a rank.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	// value reads it. ok is false for a rank that has no such thing.
	value func(r *monitor.Rank) (v float64, ok bool)
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// ofRank are the metrics of a rank.
var ofRank = []metric{
	{"start_time_seconds", "When the process started, in seconds since the epoch.", gauge,
		func(r *monitor.Rank) (float64, bool) { return r.StartSeconds, true }},
	{"state_age_seconds", "How long ago the rank published what the other metrics say.", gauge,
		func(r *monitor.Rank) (float64, bool) { return r.AgeSeconds, true }},
	{"pinned_bytes", "Memory that is registered through Pinwheel; under PINWHEEL_NODE_BUDGET with what the transport " +
		"registers for itself.", gauge,
		func(r *monitor.Rank) (float64, bool) { return float64(r.PinnedBytes), true }},
	{"peak_pinned_bytes", "The most that pinned_bytes has been since the start of the process.", gauge,
		func(r *monitor.Rank) (float64, bool) { return float64(r.PeakPinnedBytes), true }},
	{"node_budget_share_bytes", "The share of the rank in PINWHEEL_NODE_BUDGET.", gauge,
		func(r *monitor.Rank) (float64, bool) { return orNone(r.ShareBytes) }},

	{"hits_total", "Uses that found their buffer registered.", counter,
		func(r *monitor.Rank) (float64, bool) { return float64(r.Hits), true }},
	{"first_registrations_total", "Uses that registered a buffer for the first time.", counter,
		func(r *monitor.Rank) (float64, bool) { return float64(r.FirstRegs), true }},
	{"late_uses_total", "Uses that had to register a buffer again or to wait for that, since it had been deregistered.",
		counter, func(r *monitor.Rank) (float64, bool) { return float64(r.LateUses), true }},
	{"stall_seconds_total", "Time for which communication waited for registrations.", counter,
		func(r *monitor.Rank) (float64, bool) { return seconds(r.StallNs), true }},

	{"cost_again_seconds_total", "Time that late uses took to register a buffer again.", counter,
		func(r *monitor.Rank) (float64, bool) { return seconds(r.Cost.AgainNs), true }},
	{"cost_wait_seconds_total", "Time that late uses waited for a registration under way.", counter,
		func(r *monitor.Rank) (float64, bool) { return seconds(r.Cost.WaitNs), true }},
	{"cost_demand_seconds_total", "Time of registrations on demand that a cache would have spared.", counter,
		func(r *monitor.Rank) (float64, bool) { return seconds(r.Cost.DemandNs), true }},
	{"cost_helper_seconds_total", "Processor time of the helper thread on the core of its rank.", counter,
		func(r *monitor.Rank) (float64, bool) { return seconds(r.Cost.HelperNs), true }},
	{"cost_limit_ratio", "The most that the four together may be, as a share of the time: PINWHEEL_COST.", gauge,
		func(r *monitor.Rank) (float64, bool) { return r.Cost.Share, r.Cost.Share > 0 }},
	{"price_seconds", "What saving a MiB for a second has cost lately.", gauge,
		func(r *monitor.Rank) (float64, bool) { return r.Cost.PriceNs / 1e9, r.Cost.PriceNs > 0 }},

	{"helper_registrations_total", "Registrations that the helper thread made before a use.", counter,
		func(r *monitor.Rank) (float64, bool) { return float64(r.HelperRegs), true }},
	{"helper_deregistrations_total", "Deregistrations that the helper thread made after a use.", counter,
		func(r *monitor.Rank) (float64, bool) { return float64(r.HelperDeregs), true }},
	{"helper_cpu_seconds_total", "Processor time of the helper thread.", counter,
		func(r *monitor.Rank) (float64, bool) { return seconds(r.Helper.CPUNs), r.Helper.Running }},
	{"helper_registration_cpu_seconds_total",
		"Processor time of the helper thread in registrations and deregistrations.", counter,
		func(r *monitor.Rank) (float64, bool) { return seconds(r.Helper.RegisterNs), r.Helper.Running }},
	{"helper_wakeups_total", "How often the helper thread woke up.", counter,
		func(r *monitor.Rank) (float64, bool) { return float64(r.Helper.Wakeups), r.Helper.Running }},
	{"helper_cpu_limit_ratio",
		"The largest share of its rank's time that the helper thread may cost without an idle processor.", gauge,
		func(r *monitor.Rank) (float64, bool) { return orNone(r.Helper.ShareLimit) }},
	{"helper_processor", "The number of the processor that the helper thread was put on.", gauge,
		func(r *monitor.Rank) (float64, bool) {
			return float64(r.Helper.CPU), r.Helper.Running && !r.Helper.Parked && r.Helper.CPU >= 0
		}},
	{"helper_shares_processor", "1 if ranks run on the processor of the helper thread, too.", gauge,
		func(r *monitor.Rank) (float64, bool) { return truth(r.Helper.Shared), r.Helper.Running }},
	{"helper_parked", "1 while the helper thread is parked, since there is no core for it.", gauge,
		func(r *monitor.Rank) (float64, bool) { return truth(r.Helper.Parked), r.Helper.Running }},

	{"predictions_total", "Predictions that a use followed.", counter,
		func(r *monitor.Rank) (float64, bool) { return float64(r.Predictions), true }},
	{"predictions_within_half_percent_total",
		"Predictions with an error below 0.5 % of the interval between two uses.", counter,
		func(r *monitor.Rank) (float64, bool) { return float64(r.Within05), true }},
	{"predictions_within_five_percent_total",
		"Predictions with an error below 5 % of the interval between two uses.", counter,
		func(r *monitor.Rank) (float64, bool) { return float64(r.Within5), true }},
}

func orNone[T int64 | float64](v *T) (float64, bool) {
	if v == nil {
		return 0, false
	}
	return float64(*v), true
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
