package predictor

// context counts the occurrences of one signature and knows which regions were
// needed after it.
type context struct {
	seen      int // how often it occurred
	followers []*follower
}

// follower is one region's gaps after one context.
type follower struct {
	region  *region
	gaps    gaps
	overlap int    // occurrences of the context that ended while the region was in use
	cold    bool   // the only gap led through code that ran for the first time
	seq     uint64 // when it followed last
}

// maxFollowers bounds what one event costs in a program of thousands of
// regions. A region that is no follower is still predicted from its own last use.
const maxFollowers = 64

// add records that r was needed gapNs after this context.
func (c *context) add(r *region, gapNs int64, cold bool, seq uint64) {
	f := c.follower(r)
	if f == nil {
		f = c.place()
		*f = follower{region: r}
	}
	f.gaps.add(gapNs)
	f.cold = cold && f.gaps.n == 1
	f.seq = seq
}

// overlapped records that r was already in use again when the context occurred:
// of two transfers in one exchange either may complete first, and the later one
// announces the next need of both.
func (c *context) overlapped(r *region) {
	if f := c.follower(r); f != nil {
		f.overlap++
	}
}

// place returns where a new follower goes: in the place of a forgotten region, at
// the end, or in the place of the one that has not followed for longest.
func (c *context) place() *follower {
	oldest := 0
	for i, f := range c.followers {
		if f.region.forgotten {
			return f
		}
		if f.seq < c.followers[oldest].seq {
			oldest = i
		}
	}
	if len(c.followers) == maxFollowers {
		return c.followers[oldest]
	}
	f := new(follower)
	c.followers = append(c.followers, f)
	return f
}

func (c *context) follower(r *region) *follower {
	for _, f := range c.followers {
		if f.region == r {
			return f
		}
	}
	return nil
}

func (f *follower) evidence(level int) evidence {
	switch n := f.gaps.n; {
	case f.cold:
		return coldGap
	case level < levelFrame3:
		return oneOrTwoFrames
	case level < levelSite:
		return threeFrames
	case n <= 1:
		return oneGap
	case n <= 2:
		return twoGaps
	case n <= 4:
		return fewGaps
	case n <= 8:
		return someGaps
	}
	return manyGaps
}
