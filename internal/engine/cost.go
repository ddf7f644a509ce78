package engine

import "pinwheel/internal/report"

// SpentOnDemand tells what uses on demand have cost so far, in nanoseconds, and what saving a MiB for a second costs
// among them; 0 while memory is not registered on demand.
func (e *Engine) SpentOnDemand(ns int64, priceNs float64) {
	e.meter.mu.Lock()
	defer e.meter.mu.Unlock()
	e.meter.demand.spentNs, e.meter.demand.priceNs = ns, priceNs
}

// Cost returns what Pinwheel has cost the process until now.
func (e *Engine) Cost() report.Cost {
	h := e.HelperStats()
	e.meter.mu.Lock()
	defer e.meter.mu.Unlock()
	m := e.meter
	c := report.Cost{
		Share: h.Cost.Share, AgainNs: m.lateNs, WaitNs: m.underWayNs, DemandNs: m.demand.spentNs,
		HelperNs: h.SharedCPUNs, PriceNs: h.Cost.PriceNs,
	}
	if m.demand.priceNs > 0 { // the helper sleeps
		c.PriceNs = m.demand.priceNs
	}
	return c
}
