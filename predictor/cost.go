package predictor

import "math"

// When a region should be ready is the question of a newsvendor. Each nanosecond too early costs the
// memory of the region for a nanosecond, and a need that comes sooner costs a stall. The best moment
// is where both cost the same at the margin, by how the gaps were spread so far. What a stall is worth in such
// nanoseconds, Use.WorthNs says.

const (
	// leastSpread is the spread of gaps of which only one is known, as a share of it.
	leastSpread = 0.02
	// idleShare is the part of the idle time by which every prediction is earlier still. Registering early by
	// this share costs the same share of what can be saved.
	idleShare = 0.001
	// guessMargin is the most by which a guess is early, as a share of the shortest gap known: from gaps that followed a
	// less specific context, or from another run's only one, or from one through code that ran for the first time. Page
	// faults and cold caches make that longer than the next.
	guessMargin = 0.5
	// guessSpread is the least spread of such gaps, as a share of the shortest.
	guessSpread = 0.1
)

// best returns the moment of least expected cost, after an event that such gaps began at, if a stall is worth as much as
// the memory of the region for worthNs.
func (g *gaps) best(worthNs float64) int64 {
	return max(g.shortest()-int64(g.earlierNs(0, worthNs)), 0)
}

// guess is best if the gaps say little about the next one.
func (g *gaps) guess(worthNs float64) int64 {
	shortest := float64(g.shortest())
	return int64(shortest - min(g.earlierNs(guessSpread*shortest, worthNs), guessMargin*shortest))
}

// earlierNs is how much earlier than after the shortest gap that moment is. Below the shortest one, the next gap is taken
// to be spread exponentially, by as much as the shorter half of the gaps lies above the shortest, and leastNs at least.
func (g *gaps) earlierNs(leastNs, worthNs float64) float64 {
	half := (g.len() + 1) / 2
	spread := leastSpread * float64(g.median())
	for i := range half {
		spread += float64(g.at(i) - g.shortest())
	}
	spread = max(spread/float64(half+1), leastNs, 1)
	return spread * math.Log(max(worthNs/(spread*float64(g.len()+1)), 1))
}
