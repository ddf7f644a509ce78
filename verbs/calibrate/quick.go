package calibrate

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"pinwheel/mem"
	"pinwheel/verbs"
)

const (
	// measuredPages is the larger of the two sizes that are measured.
	measuredPages = 64 // 256 KiB
	// measuredRounds gives medians that the first, cold round does not move.
	measuredRounds = 7
	// measuringNs bounds the time that it takes, after one round.
	measuringNs = 700_000 // 700 us
	// leastCostNs is what any call costs the helper, whose caches are colder
	// than those of a measurement in a row.
	leastCostNs = 1_000 // 1 us
)

// Quick estimates the costs of p in about a millisecond: it registers a page and
// 64 pages a few times and lays a line through the medians. That is enough for a
// helper thread to begin with, which corrects it; Run is the exact way, and takes
// seconds. It fails where that much may not be pinned: budgetBytes, if not 0, and
// the provider's limits.
func Quick(p verbs.Provider, budgetBytes int64) (verbs.Costs, error) {
	began := time.Now()
	return quick(p, budgetBytes, func() int64 { return int64(time.Since(began)) })
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
	onePage := mem.Range{Start: m.rng.Start, End: m.rng.Start + mem.Addr(mem.PageSize)}
	small, large := sampled{nowNs: nowNs}, sampled{nowNs: nowNs}
	beganNs := nowNs()
	for range measuredRounds {
		if err := small.take(p, onePage); err != nil {
			return verbs.Costs{}, err
		}
		if err := large.take(p, m.rng); err != nil {
			return verbs.Costs{}, err
		}
		if nowNs()-beganNs > measuringNs {
			break
		}
	}
	return verbs.Costs{
		Register:   line(small.registerNs, large.registerNs),
		Deregister: line(small.deregisterNs, large.deregisterNs),
	}, nil
}

// sampled is what one size took, in nanoseconds.
type sampled struct {
	nowNs                    func() int64
	registerNs, deregisterNs []int64
}

func (s *sampled) take(p verbs.Provider, r mem.Range) error {
	beganNs := s.nowNs()
	region, err := p.Register(r, verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	registeredNs := s.nowNs()
	err = p.Deregister(region)
	s.registerNs = append(s.registerNs, registeredNs-beganNs)
	s.deregisterNs = append(s.deregisterNs, s.nowNs()-registeredNs)
	return err
}

// line goes through the medians of one page and of measuredPages.
func line(small, large []int64) verbs.Cost {
	slices.Sort(small)
	slices.Sort(large)
	one, many := float64(small[len(small)/2]), float64(large[len(large)/2])
	perPage := max(many-one, 0) / (measuredPages - 1)
	return verbs.Cost{PerPageNs: perPage, FixedNs: max(one-perPage, leastCostNs)}
}
