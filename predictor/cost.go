package predictor

import "math"

// When a region should be ready is the question of a newsvendor. Each nanosecond too early costs the
// memory of the region for a nanosecond, and a need that comes sooner costs a stall. The best moment
// is where both cost the same at the margin, by how the gaps were spread so far.

const (
	// wantedLate is the share of needs that may come before their prediction. The price of such
	// a need rises and falls until it is so.
	wantedLate = 0.003
	// firstPrice is the price to begin with.
	firstPrice = 2
	leastPrice = 0.3
	mostPrice  = 100
	priceStep  = 0.1
	// firstSpread is the spread of gaps of which only one is known, as a share of it.
	firstSpread = 0.02
	// idleShare is the part of the idle time by which every prediction is earlier still. Registering early by
	// this share costs the same share of what can be saved.
	idleShare = 0.001
)

// cheaper and dearer are what changes a price after a need that did not come sooner than predicted, and after one that did.
var (
	cheaper = math.Exp(priceStep * -wantedLate)
	dearer  = math.Exp(priceStep * (1 - wantedLate))
)

// prices say what a late need costs: that of any region a multiple of the memory that it saves in a
// mean idle time. Both the stall and the memory grow with the size of a region, so the size does not
// matter.
type prices struct {
	idleNs float64 // sum over all needs
	needs  float64
	factor float64
}

func newPrices() prices { return prices{factor: firstPrice} }

// idle notes how long a region was idle before a need.
func (s *prices) idle(ns int64) {
	s.idleNs += float64(ns)
	s.needs++
}

// weighed notes a need with a prediction that rested on prices, and whether it came sooner.
func (s *prices) weighed(sooner bool) {
	by := cheaper
	if sooner {
		by = dearer
	}
	s.factor = min(max(s.factor*by, leastPrice), mostPrice)
}

// best returns the moment of least expected cost, after an event that such gaps began at. Below the
// shortest one, the next gap is taken to be spread exponentially, by as much as the shorter half of
// the gaps lies above the shortest.
func (s *prices) best(g *gaps) int64 {
	half := (g.len() + 1) / 2
	spread := firstSpread * float64(g.median())
	for i := range half {
		spread += float64(g.at(i) - g.shortest())
	}
	spread = max(spread/float64(half+1), 1)
	price := s.factor * s.idleNs / max(s.needs, 1)
	earlier := spread * math.Log(max(price/(spread*float64(g.len()+1)), 1))
	if few := g.len() - 1; few < len(shareOfFew) {
		differ := min(float64(g.longest()-g.shortest()), shareOfFew[0]*float64(g.shortest()))
		earlier = max(earlier, shareOfFew[few]*float64(g.shortest()), differ)
	}
	return max(g.shortest()-int64(earlier), 0)
}

// Shares of the shortest gap known by which a prediction is early that rests on too little for prices.
// They were chosen over the NAS traces so that fewer than one need in a hundred comes too early for
// them. Where two gaps differ by more, the next may be shorter by as much, up to the share of one gap.
var shareOfFew = [...]float64{.12, .06} // one gap, two

const (
	// shareCold is for a gap in which code ran for the first time: page faults and cold caches make it
	// longer than it will be the next time, in SP.D more than twice as long.
	shareCold = .75
	// shareOnce is for a gap that the other run had once.
	shareOnce           = .55
	shareThreeFrames    = .4 // a less specific context
	shareOneOrTwoFrames = .5
)
