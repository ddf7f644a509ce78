package report

import (
	"fmt"
	"math"
	"strings"

	"pinwheel/internal/settings"
)

// Cost is what Pinwheel has cost the threads of a process beside leave-pinned, by its clocks, in nanoseconds.
type Cost struct {
	Share    float64 `json:"share"`     // the most that it may be, of the run time: PINWHEEL_COST; 0 without a bound
	AgainNs  int64   `json:"again_ns"`  // late uses registered their memory again
	WaitNs   int64   `json:"wait_ns"`   // late uses waited for a registration under way
	DemandNs int64   `json:"demand_ns"` // registrations on demand that a cache would have spared, and deciding on them
	HelperNs int64   `json:"helper_ns"` // processor time of a helper on the core of its rank
	PriceNs  float64 `json:"price_ns"`  // what saving a MiB for a second has cost lately
}

// SpentNs is all of it.
func (c *Cost) SpentNs() int64 { return c.AgainNs + c.WaitNs + c.DemandNs + c.HelperNs }

// add takes in what another process has cost. The price is that of the one with the highest.
func (c *Cost) add(o *Cost) {
	c.Share = max(c.Share, o.Share)
	c.AgainNs += o.AgainNs
	c.WaitNs += o.WaitNs
	c.DemandNs += o.DemandNs
	c.HelperNs += o.HelperNs
	c.PriceNs = max(c.PriceNs, o.PriceNs)
}

// Line says what was spent, on what, of a budget for runNs of all processes together; "" if there is neither.
func (c *Cost) Line(runNs float64) string {
	if c.Share == 0 && c.SpentNs() == 0 {
		return ""
	}
	percent := func(ns int64) float64 { return 100 * float64(ns) / max(runNs, 1) }
	line := fmt.Sprintf("Compared with a cache, Pinwheel cost %.2f %% of the run time", percent(c.SpentNs()))
	if c.Share > 0 {
		line += fmt.Sprintf(" (PINWHEEL_COST allows %s of that and of one second more)", settings.FormatShare(math.Round(1e6*c.Share)/1e6))
	}
	var parts []string
	for _, p := range []struct {
		ns   int64
		says string
	}{
		{c.AgainNs, "registering again"},
		{c.WaitNs, "waiting for registrations under way"},
		{c.DemandNs, "registering on demand"},
		{c.HelperNs, "the helper on the core of its rank"},
	} {
		if p.ns > 0 {
			parts = append(parts, fmt.Sprintf("%.2f %% %s", percent(p.ns), p.says))
		}
	}
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	if c.PriceNs > 0 {
		line += fmt.Sprintf("; the last MiB that was saved for a second cost %.3g ms", c.PriceNs/1e6)
	}
	return line
}
