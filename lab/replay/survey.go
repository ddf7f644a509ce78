package replay

import (
	"context"

	"pinwheel/mem"
	"pinwheel/trace"
)

// RankSurvey is what a replay in real time must know of a rank beforehand.
type RankSurvey struct {
	Needed mem.Set // pages that the rank needs registered
	Bound  Result  // of the clairvoyant policy: run time, peak and mean of the pinned bytes
}

// Survey simulates the timeline on which registration costs nothing, stretched
// by scale, and returns what one rank needs on it.
func Survey(ctx context.Context, o *Options, file *trace.File, rank int, scale float64) (RankSurvey, error) {
	pages := &pagesPath{}
	e, err := simulate(ctx, o, file, onlyRank(rank, pages))
	if err != nil {
		return RankSurvey{}, err
	}
	oracle := newScaledOracle(o, scale, e.largestPages)
	if e, err = simulate(ctx, o, file, onlyRank(rank, oracle)); err != nil {
		return RankSurvey{}, err
	}
	return RankSurvey{Needed: pages.needed, Bound: oracle.finish(e.ranks[rank].endNs)}, nil
}

// pagesPath collects which pages a rank needs.
type pagesPath struct {
	freePath
	needed mem.Set
}

func (p *pagesPath) acquire(_ int64, n *need, _ *bufferUse) (int64, error) {
	p.needed.Add(n.rng.PageAligned())
	return 0, nil
}
