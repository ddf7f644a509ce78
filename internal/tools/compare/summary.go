package compare

import (
	"maps"
	"slices"

	"pinwheel/internal/measure"
)

// Summary are the measures of runs.
type Summary struct {
	Rounds int      `json:"rounds"` // with a run in every mode that did not fail
	Ranks  int      `json:"ranks"`
	Modes  []Totals `json:"modes"`
	// TransportBytes is what the transport pins for itself, whoever keeps registrations: Run.LeastBytes without a cache.
	// SavableBytes is what its cache adds to what no cache pins, on average, and Savable the share of the cache's memory
	// that this is.
	TransportBytes measure.Estimate `json:"transport_bytes"`
	SavableBytes   measure.Estimate `json:"savable_bytes"`
	Savable        float64          `json:"savable"`
	// Managed is how many registrations went through Pinwheel, in all runs. Without any, what it saved is the doing of no
	// cache.
	Managed uint64 `json:"managed_regs"`
	// Passed is how many as large as messages went past it. What those save and cost is the doing of no cache, too.
	Passed uint64 `json:"passed_regs"`
	// Beside is what Pinwheel takes beside each other mode, and then what each of those takes beside the cache.
	Beside []Beside `json:"beside"`
	// Beyond is the ratio of Pinwheel's processor time to the cache's without the time of its registrations; Added is what
	// Pinwheel counts itself that it adds beside them and the opening.
	Beyond *measure.Estimate `json:"cpu_ratio_beyond_registrations,omitempty"`
	Added  *measure.Estimate `json:"added_share,omitempty"`
	// StartNs and EndNs are what a rank takes more with Pinwheel than with the cache to begin and to end. OpeningNs is
	// the part of the start that it puts off until the first large message, as it counts itself.
	StartNs   measure.Estimate  `json:"start_more_ns_per_rank"`
	EndNs     measure.Estimate  `json:"end_more_ns_per_rank"`
	OpeningNs *measure.Estimate `json:"opening_ns_per_rank,omitempty"`
	Reasons   []string          `json:"reasons,omitempty"` // what kept memory registered in the last run
}

// round are the runs of one round.
type round map[Mode]Run

// rounds have a run in each of Modes that did not fail. Runs in other modes may be missing.
type rounds []round

func whole(runs []Run) (all rounds) {
	good := map[int]round{}
	for _, r := range runs {
		if r.Failed == "" {
			if good[r.Round] == nil {
				good[r.Round] = round{}
			}
			good[r.Round][r.Mode] = r
		}
	}
	for _, n := range slices.Sorted(maps.Keys(good)) {
		all = append(all, good[n])
	}
	for _, m := range Modes {
		all = all.with(m)
	}
	return all
}

// with returns the rounds that have a run in this mode.
func (rounds rounds) with(m Mode) (some rounds) {
	for _, r := range rounds {
		if _, there := r[m]; there {
			some = append(some, r)
		}
	}
	return some
}

// of estimates a value of at least one round.
func (rounds rounds) of(value func(round) float64) measure.Estimate {
	var values []float64
	for _, r := range rounds {
		values = append(values, value(r))
	}
	return measure.Estimated(values)
}

// Summarize makes the measures. ok is false if no round is whole.
func Summarize(runs []Run) (s Summary, ok bool) {
	rounds := whole(runs)
	if len(rounds) == 0 {
		return s, false
	}
	s.Rounds, s.Ranks = len(rounds), rounds[0][Cache].Ranks
	cache, none := rounds.pinned(Cache).Median, rounds.pinned(None).Median
	if cache > none {
		s.Savable = (cache - none) / cache
	}
	var toCache []Beside
	for _, m := range AllModes {
		if len(rounds.with(m)) == 0 {
			continue
		}
		s.Modes = append(s.Modes, rounds.totals(m, s.Savable > 0))
		if m != Pinwheel {
			s.Beside = append(s.Beside, rounds.beside(Pinwheel, m))
		}
		if m != Pinwheel && m != Cache {
			toCache = append(toCache, rounds.beside(m, Cache))
		}
	}
	s.Beside = append(s.Beside, toCache...)
	s.TransportBytes = rounds.of(func(r round) float64 { return r[None].LeastBytes })
	s.SavableBytes = rounds.of(func(r round) float64 { return r[Cache].AvgPinnedBytes - r[None].AvgPinnedBytes })
	ranks := float64(max(s.Ranks, 1))
	s.StartNs = rounds.of(func(r round) float64 { return (r[Pinwheel].StartCPUNs - r[Cache].StartCPUNs) / ranks })
	s.EndNs = rounds.of(func(r round) float64 { return (r[Pinwheel].EndCPUNs - r[Cache].EndCPUNs) / ranks })
	s.own(rounds)
	return s, true
}

// own adds what only Pinwheel itself knows, if every run of it has reported.
func (s *Summary) own(rounds rounds) {
	for _, r := range rounds {
		if r[Pinwheel].Own != nil {
			s.Managed += r[Pinwheel].Own.Uses
			s.Passed += r[Pinwheel].Own.Passed
		}
	}
	s.Reasons = rounds[len(rounds)-1][Pinwheel].Reasons
	if slices.ContainsFunc(rounds, func(r round) bool { return r[Pinwheel].Own == nil }) {
		return
	}
	beyond := rounds.of(func(r round) float64 {
		return ratio(r[Pinwheel].CPUNs-float64(r[Pinwheel].Own.RegisterNs), r[Cache].CPUNs)
	})
	added := rounds.of(func(r round) float64 { return ratio(r[Pinwheel].Own.Own().Running(), r[Cache].CPUNs) })
	opening := rounds.of(func(r round) float64 { return float64(r[Pinwheel].Own.OpeningCPUNs) / float64(max(s.Ranks, 1)) })
	s.Beyond, s.Added, s.OpeningNs = &beyond, &added, &opening
}

// Of returns the totals of a mode, and zero totals if it was not measured.
func (s Summary) Of(m Mode) Totals {
	for _, t := range s.Modes {
		if t.Mode == m {
			return t
		}
	}
	return Totals{Mode: m}
}

// Versus returns what is known of a mode beside another.
func (s Summary) Versus(m, other Mode) Versus {
	for _, b := range s.Beside {
		if b.Mode == m && b.Other == other {
			return b.Versus
		}
	}
	return Versus{}
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
