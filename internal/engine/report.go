package engine

import (
	"fmt"
	"math"

	"pinwheel/internal/report"
	"pinwheel/internal/usage"
	"pinwheel/predictor"
	"pinwheel/regcache"
)

// reportedSites is how many call sites a report has. The report of all ranks lists fewer.
const reportedSites = 4 * report.TopSites

// Report returns the report of this process, with the counters of the caches, what was
// measured over time, and the work of the helper. name returns the names of a call site and
// of a kind of call. The front end fills in the fields that only it knows.
func (e *Engine) Report(s regcache.Stats, name func(predictor.CallSite) (site, op string)) report.Rank {
	r := report.ThisProcess()
	r.Helper = "none"
	e.meter.report(&r)
	r.Hits, r.Waited, r.First, r.Late, r.Failed = s.Hits, s.Waited, s.First, s.Late, s.Failed
	r.HelperRegs, r.HelperDeregs = s.HelperRegisters, s.HelperDeregisters
	r.Evicted, r.Invalidated = s.Evicted, s.Invalidated
	r.Cost = e.Cost()
	if e.helper == nil {
		return r
	}
	if e.learner != nil {
		r.Profile = e.learner.outcome.Load()
	}
	h := e.helper.Stats()
	r.Helper, r.HelperCPUNs, r.HelperFaulted = e.meter.whereabouts(e.where, e.onDemand != nil, h.SharedNs), h.CPUNs, h.Faulted
	r.SharedNs, r.SharedCPUNs = h.SharedNs, h.SharedCPUNs
	r.CPUNs -= h.CPUNs
	r.HelperActionNs, r.HelperWakeups, r.LateWhy = h.ActionNs, h.Wakeups, h.Late
	r.Starts = h.Starts
	r.Accuracy = accuracy(e.scored.Accuracy().Counts)
	for _, c := range e.scored.Sites(reportedSites) {
		missed := e.meter.missedAt(c.CallSite)
		site := report.Site{
			Uses: c.Uses, Bytes: int64(c.Bytes), Late: missed.late, StallNs: missed.stallNs,
			Accuracy: accuracy(c.Counts),
		}
		site.Name, site.Op = name(c.CallSite)
		r.Sites = append(r.Sites, site)
	}
	return r
}

func accuracy(c predictor.Counts) report.Accuracy {
	n := float64(max(c.N, 1))
	return report.Accuracy{Predictions: c.N, Err05: float64(c.Below05) / n, Err5: float64(c.Below5) / n}
}

// report fills in what was measured until now.
func (m *meter) report(r *report.Rank) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowNs()
	r.Seconds = float64(now) / 1e9
	r.CPUNs = processCPUNs() - m.beganCPU
	r.RegisterNs, r.HelperRegisterNs, r.FirstUsesNs = m.registerNs, m.byHelperNs, m.firstUsesNs
	r.PeakPinnedBytes, r.AveragePinnedBytes = m.pinned.Peak(), int64(m.pinned.Mean(now))
	r.Parks, r.FirstParkNs = m.parks, m.firstParkNs
	r.ParkedNs = int64(m.parked.Mean(now) * float64(now))
	r.QuotaUsedUpNs = m.quotaUsedUpNs(now)
	r.History = &report.History{
		Pinned:  series(m.pinned.Series(), now, (*usage.Series).Mean, 1),
		Parked:  series(m.parked.Series(), now, (*usage.Series).Mean, share),
		Stalled: series(&m.stalled, now, (*usage.Series).Mean, share),
		Late:    series(&m.late, now, (*usage.Series).Total, 1),
	}
	r.History.PinnedPeaks = m.pinned.Series().Until(now, seriesBins).Peak
}

const (
	seriesBins = 1024 // of each series in a report
	share      = 1e4  // the scale of shares
)

// series returns a series until now, with values rounded to multiples of 1/scale.
func series(s *usage.Series, now int64, value func(*usage.Series, int) float64, scale float64) report.Series {
	u := s.Until(now, seriesBins)
	out := report.Series{WidthNs: u.WidthNs}
	for i := range u.Peak {
		out.Values = append(out.Values, math.Round(value(&u, i)*scale)/scale)
	}
	return out
}

// whereabouts says where the helper is, and whether it was parked instead, or shared a core for some time.
func (m *meter) whereabouts(where string, onDemand bool, sharedNs int64) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.nowNs()
	seconds := m.parked.Mean(now) * float64(now) / 1e9
	switch {
	case m.at.Parked && m.at.QuotaUsedUp:
		return fmt.Sprintf("parked: the CPU quota is used up (%.1f s)", seconds)
	case m.at.Parked:
		return fmt.Sprintf("parked: no idle core (%.1f s)", seconds)
	case m.at.Shared && onDemand:
		return "parked: no idle core, so memory is registered on demand"
	case m.at.Shared:
		return "on the core of its rank"
	case sharedNs > 0:
		return fmt.Sprintf("%s, before on that of its rank (%.1f s)", where, float64(sharedNs)/1e9)
	case m.parks > 0:
		return fmt.Sprintf("%s, parked before (%.1f s)", where, seconds)
	}
	return where
}

// missedAt returns the misses at a call site.
func (m *meter) missedAt(site predictor.CallSite) misses {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := m.misses[site]; at != nil {
		return *at
	}
	return misses{}
}
