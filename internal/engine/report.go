package engine

import (
	"pinwheel/internal/clock"
	"pinwheel/internal/report"
	"pinwheel/predictor"
	"pinwheel/regcache"
)

// reportedSites is how many call sites a report has. The report of all ranks lists fewer.
const reportedSites = 4 * report.TopSites

// Report returns the report of this process, with the counters of the caches, the
// pinned bytes, and the work of the helper. name returns the names of a call site and
// of a kind of call. The face fills in the fields that only it knows.
func (e *Engine) Report(s regcache.Stats, name func(predictor.CallSite) (site, op string)) report.Rank {
	r := report.ThisProcess()
	r.Helper = "none"
	r.Seconds = float64(clock.NowNs()-e.pinned.beganNs) / 1e9
	r.PeakPinnedBytes, r.AveragePinnedBytes = e.pinned.read()
	r.Hits, r.Waited, r.First, r.Late, r.Failed = s.Hits, s.Waited, s.First, s.Late, s.Failed
	r.HelperRegs, r.HelperDeregs = s.HelperRegisters, s.HelperDeregisters
	r.Evicted, r.Invalidated = s.Evicted, s.Invalidated
	if e.helper == nil {
		return r
	}
	r.Helper, r.HelperCPUNs = e.where, e.helper.Stats().CPUNs
	r.Accuracy = accuracy(e.scored.Accuracy().Counts)
	for _, c := range e.scored.Sites(reportedSites) {
		site := report.Site{Uses: c.Uses, Bytes: int64(c.Bytes), Accuracy: accuracy(c.Counts)}
		site.Name, site.Op = name(c.CallSite)
		r.Sites = append(r.Sites, site)
	}
	return r
}

func accuracy(c predictor.Counts) report.Accuracy {
	n := float64(max(c.N, 1))
	return report.Accuracy{Predictions: c.N, Err05: float64(c.Below05) / n, Err5: float64(c.Below5) / n}
}
