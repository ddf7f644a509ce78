package calibrate

import (
	"cmp"
	"fmt"

	"pinwheel/mem"
	"pinwheel/verbs"
)

const (
	// measuredPages is the larger of the two sizes that are measured.
	measuredPages = 64 // 256 KiB
	// measuredRounds gives medians that the first, cold round does not move.
	measuredRounds = 7
	// leastRounds gives medians that one interruption does not move. After a round of 30 ms, by a thread that has waited for
	// its processor, no buffer of 1 MiB is deregistered before the budget of cost has earned it: in half a minute.
	leastRounds = 3
	// measuringNs bounds the time that it takes, after leastRounds.
	measuringNs = 700_000 // 700 us
	// leastCostNs is what any call costs the helper, whose caches are colder
	// than those of a measurement in a row.
	leastCostNs = 1_000 // 1 us
)

// Quick estimates the costs of p in about a millisecond, or three rounds if they take longer: it registers a page and
// 64 pages a few times and lays a line through the medians. That is enough for a helper thread to begin with, which
// corrects it; Run is the exact way, and takes seconds. It fails where that much may not be pinned: budgetBytes, if not
// 0, and the provider's limits.
func Quick(p verbs.Provider, budgetBytes int64) (verbs.Costs, error) {
	return quick(p, budgetBytes, nowNs)
}

func quick(p verbs.Provider, budgetBytes int64, nowNs func() int64) (verbs.Costs, error) {
	l := p.Limits()
	most := min(l.MaxPinnedBytes, l.MaxRegionBytes, cmp.Or(budgetBytes, mem.Unlimited))
	if most < measuredPages*int64(mem.PageSize) {
		return verbs.Costs{}, fmt.Errorf("costs: %d pages are more than may be pinned", measuredPages)
	}
	m, err := mapMemory(measuredPages*mem.PageSize, false)
	if err != nil {
		return verbs.Costs{}, err
	}
	defer m.unmap()
	m.touch()
	page := m
	page.rng.End = page.rng.Start + mem.Addr(mem.PageSize)
	ladder := []*rung{{pages: 1, memory: page}, {pages: measuredPages, memory: m}}
	beganNs := nowNs()
	for round := range measuredRounds {
		if round >= leastRounds && nowNs()-beganNs > measuringNs {
			break
		}
		for _, r := range ladder {
			if err := r.sample(p, nowNs, 0, nil); err != nil {
				return verbs.Costs{}, err
			}
		}
	}
	pair, err := fitLadder(ladder)
	if err != nil {
		return verbs.Costs{}, err
	}
	c := pair.Costs()
	c.Register.FixedNs = max(c.Register.FixedNs, leastCostNs)
	c.Deregister.FixedNs = max(c.Deregister.FixedNs, leastCostNs)
	return c, nil
}
