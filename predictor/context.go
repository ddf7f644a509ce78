package predictor

// The number of contexts is bounded, for programs whose contexts never repeat. Contexts are kept in two
// generations. When the present one is full, it becomes the old one, and contexts of the old one that were
// not seen since are forgotten. A generation has room for the contexts of several uses of each region: what a
// program that uses many regions in turn has learned must last until their turn comes again. Two full generations of
// the largest size take 90 to 180 MB.
const (
	leastGeneration   = 1 << 14
	mostGeneration    = 1 << 17
	contextsPerRegion = 8
)

// contexts know what followed each signature: since a buffer's role is part of it, the next need of
// that buffer.
type contexts struct {
	present, old map[signature]*follower
	most         int // in a generation
}

// follower is what followed one context.
type follower struct {
	seen    bool
	seeded  bool     // its gaps are another run's
	gaps    gaps     // from the end of the use to the next need
	cold    bool     // the only gap led through code that ran for the first time
	learned uint64   // the latest event when its latest gap ended
	hits    int      // predictions in a row that were met
	trigger *trigger // nil: unknown; only specific contexts have one
}

func newContexts() contexts {
	return contexts{present: make(map[signature]*follower), most: leastGeneration}
}

// fit makes room for the contexts of so many regions.
func (c *contexts) fit(regions int) {
	c.most = min(max(leastGeneration, contextsPerRegion*regions), mostGeneration)
}

// follower returns what is known of a context.
func (c *contexts) follower(sig signature, s *seeds) *follower {
	if f := c.present[sig]; f != nil {
		return f
	}
	if len(c.present) >= c.most {
		c.old, c.present = c.present, make(map[signature]*follower)
	}
	f := c.old[sig]
	if f == nil {
		f = new(follower)
		s.sow(sig, f)
	}
	c.present[sig] = f
	return f
}
