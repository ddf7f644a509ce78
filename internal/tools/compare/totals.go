package compare

import (
	"slices"

	"pinwheel/internal/measure"
)

// Totals are the medians of one mode, over all ranks.
type Totals struct {
	Mode           Mode             `json:"mode"`
	Rounds         int              `json:"rounds"`
	AvgPinnedBytes measure.Estimate `json:"avg_pinned_bytes"`
	PeakBytes      measure.Estimate `json:"peak_pinned_bytes"`
	CPUNs          measure.Estimate `json:"cpu_ns"`
	StartCPUNs     measure.Estimate `json:"start_cpu_ns"`
	EndCPUNs       measure.Estimate `json:"end_cpu_ns"`
	Seconds        measure.Estimate `json:"run_s"`
	RegisterNs     measure.Estimate `json:"register_ns"` // of Pinwheel's registrations
	// CapturedLive is the share of SavableBytes that this mode saved: none in Cache, all in None. It is nil if there is
	// nothing to save.
	CapturedLive *measure.Estimate `json:"captured_live,omitempty"`
	Watches      []string          `json:"watches,omitempty"` // how Pinwheel noticed changes of mappings; see report.Rank.Mapping
	// Late is the share of the uses after the first, in all runs, that report.Rank.LateUses counts. Cost is the sum of
	// report.Cost as a share of the run time of all ranks, and nil if a run has not reported, or has managed nothing:
	// policy on-demand counts no cost. CostAllowed bounds it (PINWHEEL_COST), and is 0 where nothing does.
	Late        float64           `json:"late_share"`
	Cost        *measure.Estimate `json:"cost_share,omitempty"`
	CostAllowed float64           `json:"cost_allowed,omitempty"`
}

func (rounds rounds) pinned(m Mode) measure.Estimate {
	return rounds.with(m).of(func(r round) float64 { return r[m].AvgPinnedBytes })
}

// totals are of the rounds that have the mode; there is one.
func (rounds rounds) totals(m Mode, savable bool) Totals {
	rounds = rounds.with(m)
	in := func(value func(Run) float64) measure.Estimate {
		return rounds.of(func(r round) float64 { return value(r[m]) })
	}
	t := Totals{
		Mode:           m,
		Rounds:         len(rounds),
		AvgPinnedBytes: rounds.pinned(m),
		PeakBytes:      in(func(r Run) float64 { return r.PeakBytes }),
		CPUNs:          in(func(r Run) float64 { return r.CPUNs }),
		StartCPUNs:     in(func(r Run) float64 { return r.StartCPUNs }),
		EndCPUNs:       in(func(r Run) float64 { return r.EndCPUNs }),
		Seconds:        in(func(r Run) float64 { return r.Seconds }),
		RegisterNs: in(func(r Run) float64 {
			if r.Own == nil {
				return 0
			}
			return float64(r.Own.RegisterNs)
		}),
	}
	if savable {
		captured := rounds.of(func(r round) float64 {
			return ratio(r[Cache].AvgPinnedBytes-r[m].AvgPinnedBytes, r[Cache].AvgPinnedBytes-r[None].AvgPinnedBytes)
		})
		t.CapturedLive = &captured
	}
	t.own(rounds)
	return t
}

// own adds what the ranks report.
func (t *Totals) own(rounds rounds) {
	late, uses, reported := 0.0, 0.0, true
	for _, r := range rounds {
		own := r[t.Mode].Own
		if own == nil || own.Uses == 0 && own.Cost.Share == 0 {
			reported = false
			continue
		}
		late += float64(own.LateUses())
		uses += float64(own.Uses) - float64(own.First)
		t.CostAllowed = max(t.CostAllowed, own.Cost.Share)
		if own.Mapping != "" {
			t.Watches = append(t.Watches, own.Mapping)
		}
	}
	slices.Sort(t.Watches)
	t.Watches = slices.Compact(t.Watches)
	t.Late = ratio(late, uses)
	if reported {
		cost := rounds.of(func(r round) float64 {
			run := r[t.Mode]
			return ratio(float64(run.Own.Cost.SpentNs()), float64(run.Ranks)*run.Own.Seconds*1e9)
		})
		t.Cost = &cost
	}
}
