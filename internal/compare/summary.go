package compare

import "slices"

// Summary are the measures of runs.
type Summary struct {
	Rounds int      `json:"rounds"` // with a run in every mode that did not fail
	Ranks  int      `json:"ranks"`
	Modes  []Totals `json:"modes"`
	// TransportBytes is what the transport pins for itself, whoever keeps registrations: Run.LeastBytes without a cache.
	// SavableBytes is what its cache adds to what no cache pins, on average, and Savable the share of the cache's memory
	// that this is. CapturedLive is the share of it that Pinwheel saved; nil if there is nothing.
	TransportBytes Estimate  `json:"transport_bytes"`
	SavableBytes   Estimate  `json:"savable_bytes"`
	Savable        float64   `json:"savable"`
	CapturedLive   *Estimate `json:"captured_live,omitempty"`
	// Managed is how many registrations went through Pinwheel, in all runs. Without any, what it saved is the doing of no
	// cache.
	Managed uint64 `json:"managed_regs"`
	// Passed is how many as large as messages went past it. What those save and cost is the doing of no cache, too.
	Passed uint64 `json:"passed_regs"`
	// What one mode takes beside another.
	PinwheelToCache Versus `json:"pinwheel_to_cache"`
	PinwheelToNone  Versus `json:"pinwheel_to_none"`
	NoneToCache     Versus `json:"none_to_cache"`
	// Beyond is the ratio of Pinwheel's processor time to the cache's without the time of its registrations; Added is what
	// Pinwheel counts itself that it adds beside them and the opening.
	Beyond *Estimate `json:"cpu_ratio_beyond_registrations,omitempty"`
	Added  *Estimate `json:"added_share,omitempty"`
	// StartNs and EndNs are what a rank takes more with Pinwheel than with the cache to begin and to end. OpeningNs is
	// the part of the start that it puts off until the first large message, as it counts itself.
	StartNs   Estimate  `json:"start_more_ns_per_rank"`
	EndNs     Estimate  `json:"end_more_ns_per_rank"`
	OpeningNs *Estimate `json:"opening_ns_per_rank,omitempty"`
	Late      float64   `json:"late_share"`        // of the needs after the first, in all runs
	Reasons   []string  `json:"reasons,omitempty"` // what kept memory registered in the last run
}

// Totals are the medians of one mode, over all ranks.
type Totals struct {
	Mode           Mode     `json:"mode"`
	AvgPinnedBytes Estimate `json:"avg_pinned_bytes"`
	PeakBytes      Estimate `json:"peak_pinned_bytes"`
	CPUNs          Estimate `json:"cpu_ns"`
	StartCPUNs     Estimate `json:"start_cpu_ns"`
	EndCPUNs       Estimate `json:"end_cpu_ns"`
	Seconds        Estimate `json:"run_s"`
	RegisterNs     Estimate `json:"register_ns"` // of Pinwheel's registrations
}

// round are the runs of one round.
type round struct{ cache, none, pinwheel Run }

func (r round) of(m Mode) Run {
	return map[Mode]Run{Cache: r.cache, None: r.none, Pinwheel: r.pinwheel}[m]
}

// whole returns the rounds with a run in every mode.
func whole(runs []Run) []round {
	type key struct {
		mode  Mode
		round int
	}
	good := map[key]Run{}
	var numbers []int
	for _, r := range runs {
		if r.Failed == "" {
			good[key{r.Mode, r.Round}] = r
			numbers = append(numbers, r.Round)
		}
	}
	slices.Sort(numbers)
	var rounds []round
	for _, n := range slices.Compact(numbers) {
		cache, a := good[key{Cache, n}]
		none, b := good[key{None, n}]
		pinwheel, c := good[key{Pinwheel, n}]
		if a && b && c {
			rounds = append(rounds, round{cache, none, pinwheel})
		}
	}
	return rounds
}

// Summarize makes the measures. ok is false if no round is whole.
func Summarize(runs []Run) (s Summary, ok bool) {
	rounds := whole(runs)
	if len(rounds) == 0 {
		return s, false
	}
	of := func(value func(round) float64) Estimate {
		var values []float64
		for _, r := range rounds {
			values = append(values, value(r))
		}
		return Estimated(values)
	}
	s.Rounds, s.Ranks = len(rounds), rounds[0].cache.Ranks
	for _, m := range Modes {
		s.Modes = append(s.Modes, totals(m, of))
	}
	s.TransportBytes = of(func(r round) float64 { return r.none.LeastBytes })
	s.SavableBytes = of(func(r round) float64 { return r.cache.AvgPinnedBytes - r.none.AvgPinnedBytes })
	if cache, none := s.Of(Cache).AvgPinnedBytes.Median, s.Of(None).AvgPinnedBytes.Median; cache > none {
		s.Savable = (cache - none) / cache
		captured := of(func(r round) float64 {
			return ratio(r.cache.AvgPinnedBytes-r.pinwheel.AvgPinnedBytes, r.cache.AvgPinnedBytes-r.none.AvgPinnedBytes)
		})
		s.CapturedLive = &captured
	}
	s.PinwheelToCache = versus(of, Pinwheel, Cache)
	s.PinwheelToNone = versus(of, Pinwheel, None)
	s.NoneToCache = versus(of, None, Cache)
	ranks := float64(max(s.Ranks, 1))
	s.StartNs = of(func(r round) float64 { return (r.pinwheel.StartCPUNs - r.cache.StartCPUNs) / ranks })
	s.EndNs = of(func(r round) float64 { return (r.pinwheel.EndCPUNs - r.cache.EndCPUNs) / ranks })
	s.own(rounds, of)
	return s, true
}

// own adds what only Pinwheel itself knows, if every run of it has reported.
func (s *Summary) own(rounds []round, of func(func(round) float64) Estimate) {
	for _, r := range rounds {
		if r.pinwheel.Own != nil {
			s.Managed += r.pinwheel.Own.Uses
			s.Passed += r.pinwheel.Own.Passed
		}
	}
	s.Reasons = rounds[len(rounds)-1].pinwheel.Reasons
	if slices.ContainsFunc(rounds, func(r round) bool { return r.pinwheel.Own == nil }) {
		return
	}
	beyond := of(func(r round) float64 {
		return ratio(r.pinwheel.CPUNs-float64(r.pinwheel.Own.RegisterNs), r.cache.CPUNs)
	})
	added := of(func(r round) float64 { return ratio(r.pinwheel.Own.Own().Running(), r.cache.CPUNs) })
	opening := of(func(r round) float64 { return float64(r.pinwheel.Own.OpeningCPUNs) / float64(max(s.Ranks, 1)) })
	s.Beyond, s.Added, s.OpeningNs = &beyond, &added, &opening
	late, needs := 0.0, 0.0
	for _, r := range rounds {
		late += float64(r.pinwheel.Own.LateUses())
		needs += float64(r.pinwheel.Own.Uses) - float64(r.pinwheel.Own.First)
	}
	s.Late = ratio(late, needs)
}

func totals(m Mode, of func(func(round) float64) Estimate) Totals {
	in := func(value func(Run) float64) Estimate {
		return of(func(r round) float64 { return value(r.of(m)) })
	}
	return Totals{
		Mode:           m,
		AvgPinnedBytes: in(func(r Run) float64 { return r.AvgPinnedBytes }),
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
}

// Of returns the totals of a mode.
func (s Summary) Of(m Mode) Totals { return s.Modes[slices.Index(Modes, m)] }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
