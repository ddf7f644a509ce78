package pinwheel

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"pinwheel/mem"
	"pinwheel/verbs"
)

// defaultCosts are those of a usual RDMA adapter: 16 us and 0.25 us a page.
// Too high rather than too low: regions are registered too early then, not late.
var defaultCosts = verbs.Costs{
	Register:   verbs.Cost{PerPageNs: 250, FixedNs: 16_000},
	Deregister: verbs.Cost{PerPageNs: 120, FixedNs: 16_000},
}

const (
	// measuredPages is the larger of the two sizes that are measured.
	measuredPages = 64 // 256 KiB
	// measuredRounds gives medians that the first, cold round does not move.
	measuredRounds = 7
	// measuringNs bounds the time that New takes for it, after one round.
	measuringNs = 700_000 // 700 us
	// leastCostNs is what any call costs the helper, whose caches are colder
	// than those of a measurement in a row.
	leastCostNs = 1_000 // 1 us
)

// measureCosts registers a page and measuredPages pages a few times and lays a
// line through the medians: enough for the helper to begin with, which corrects
// it. Package verbs/calibrate is the exact way, and takes seconds. It fails where
// that much may not be pinned: budgetBytes, if not 0, and the provider's limits.
func measureCosts(p verbs.Provider, budgetBytes int64, nowNs func() int64) (verbs.Costs, error) {
	l := p.Limits()
	most := min(l.MaxPinnedBytes, l.MaxRegionBytes, cmp.Or(budgetBytes, mem.Unlimited))
	if most < measuredPages*int64(mem.PageSize) {
		return verbs.Costs{}, fmt.Errorf("costs: %d pages are more than may be pinned", measuredPages)
	}
	memory, err := unix.Mmap(-1, 0, measuredPages*int(mem.PageSize), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return verbs.Costs{}, fmt.Errorf("costs: mmap: %w", err)
	}
	defer unix.Munmap(memory)
	small, large := sampled{nowNs: nowNs}, sampled{nowNs: nowNs}
	beganNs := nowNs()
	for range measuredRounds {
		if err := small.take(p, memory[:mem.PageSize]); err != nil {
			return verbs.Costs{}, err
		}
		if err := large.take(p, memory); err != nil {
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

func (s *sampled) take(p verbs.Provider, memory []byte) error {
	r := rangeOf(memory)
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
