package report

import (
	"fmt"

	"pinwheel/internal/settings"
)

// Demand is what uses on demand did: each registered its memory for itself, because no processor was idle.
type Demand struct {
	Uses  uint64 `json:"uses"`
	Bytes int64  `json:"avg_bytes"` // registered so, on average
	// RegisterNs is how long they took to register and to deregister, and CostNs how much of that a cache would have
	// spared. Cost is the most that it may be, as a share of the run time: PINWHEEL_COST.
	RegisterNs int64   `json:"register_ns"`
	CostNs     int64   `json:"cost_ns"`
	Cost       float64 `json:"cost"`
	LookNs     int64   `json:"look_ns"` // processor time of deciding which are
}

func (d *Demand) add(o *Demand) {
	d.Uses += o.Uses
	d.Bytes += o.Bytes
	d.RegisterNs += o.RegisterNs
	d.CostNs += o.CostNs
	d.LookNs += o.LookNs
	d.Cost = max(d.Cost, o.Cost)
}

// line says of n ranks what was registered on demand, "" if nothing was.
func (d *Demand) line(n int, seconds float64) string {
	if d.Uses == 0 {
		return ""
	}
	ns := float64(n) * seconds * 1e9
	return fmt.Sprintf("No idle core: %s registered memory on demand, in %.1f ms. Beside a cache, that cost %.2f %% of the"+
		" run time (PINWHEEL_COST allows %s, and what 2 s earn)", count(d.Uses, "use"), float64(d.RegisterNs)/1e6,
		100*float64(d.CostNs+d.LookNs)/max(ns, 1), settings.FormatShare(d.Cost))
}
