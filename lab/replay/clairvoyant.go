package replay

import (
	"pinwheel/mem"
	"pinwheel/predictor"
)

// useLog is what each region of a rank was needed for. The IDs are those of every policy with a
// registration cache: which region serves a request does not depend on what is registered.
type useLog map[mem.RegionID]*needs

// needs are those of one region.
type needs struct {
	rng     mem.Range // of all
	startNs []int64   // in the order in which the uses ended

	parts   []mem.RegionID // regions inside of it, which it can serve until they are known
	matched bool           // parts is known
}

// add notes a use that has ended.
func (l useLog) add(u predictor.Use) {
	n := l[u.Region]
	if n == nil {
		n = &needs{}
		l[u.Region] = n
	}
	n.rng = n.rng.Union(u.Range)
	n.startNs = append(n.startNs, u.StartNs)
}

// clairvoyant is the predictor of policy clairvoyant. It knows the next need of every region's bytes: of the region, or
// of one inside of it that is not known yet and which it can serve.
type clairvoyant struct {
	log     useLog
	done    map[mem.RegionID]int // uses so far
	delayNs int64                // how much later than in the log this run is
	now     [1]mem.RegionID
}

var _ predictor.Predictor = (*clairvoyant)(nil)

func newClairvoyant(log useLog) *clairvoyant {
	return &clairvoyant{log: log, done: map[mem.RegionID]int{}}
}

func (c *clairvoyant) Observe(u predictor.Use) {
	if n := c.log[u.Region]; n != nil && c.done[u.Region] < len(n.startNs) {
		c.delayNs = u.StartNs - n.startNs[c.done[u.Region]]
	}
	c.done[u.Region]++
	c.now[0] = u.Region
}

func (c *clairvoyant) Changed() []mem.RegionID { return c.now[:] }
func (c *clairvoyant) Forget(mem.RegionID)     {}

func (c *clairvoyant) Next(id mem.RegionID, _ int64) (predictor.Prediction, bool) {
	whole := c.log[id]
	if whole == nil {
		return predictor.Prediction{}, false
	}
	next := int64(maxTimeNs) // if it is not needed again
	if n := c.done[id]; n < len(whole.startNs) {
		next = whole.startNs[n] + c.delayNs
	}
	for _, part := range c.partsOf(whole) {
		if c.done[part] == 0 {
			next = min(next, c.log[part].startNs[0]+c.delayNs)
		}
	}
	return predictor.Prediction{NextNs: next, ExpectedNs: next, LatestNs: next, Confidence: 1}, true
}

func (c *clairvoyant) partsOf(whole *needs) []mem.RegionID {
	if !whole.matched {
		whole.matched = true
		for part, n := range c.log {
			if n != whole && whole.rng.Contains(n.rng) {
				whole.parts = append(whole.parts, part)
			}
		}
	}
	return whole.parts
}
