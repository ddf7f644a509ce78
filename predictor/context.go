package predictor

// The number of contexts is bounded, for programs whose contexts never repeat. Contexts are kept in two
// generations. When the present one is full, it becomes the old one, and contexts of the old one that were
// not seen since are forgotten. A generation has room for the contexts of several uses of each region: what a
// program that uses many regions in turn has learned must last until their turn comes again.
const (
	leastGeneration   = 1 << 14
	mostGeneration    = 1 << 17
	contextsPerRegion = 8
)

// contexts know what followed each signature: since a buffer's identity is part of it, the next need of
// that buffer.
//
// The context of one level contains those of the levels above it. As long as a context has only ever been met together
// with one context of the next level, the same has followed both, and they share a follower.
type contexts struct {
	present, old map[signature]*follower
	most         int // in a generation
	edition      int // changes whenever a path may have become invalid
}

// path is what followed the contexts of one use.
type path struct {
	window    signature // the most specific of them
	followers [levels]*follower
	edition   int // of contexts: it is valid as long as that is the same
}

// follower is what followed one context.
type follower struct {
	level   int8 // the most specific one of those that share it
	seen    bool
	trained bool     // its gaps are another run's
	cold    bool     // the only gap led through code that ran for the first time
	gaps    gaps     // from the end of the use to the next need
	trigger *trigger // nil: unknown; followers of some frames have one only as long as they share
	path    *path    // of uses in this context; only those with a window have one
}

func newContexts() contexts {
	return contexts{present: make(map[signature]*follower), most: leastGeneration, edition: 1}
}

// fit makes room for the contexts of this many regions.
func (c *contexts) fit(regions int) {
	c.most = min(max(leastGeneration, contextsPerRegion*regions), mostGeneration)
}

// path returns what is known of the contexts of a use. Almost always, all of them have been met since
// something has changed here, so one look at the most specific one is enough, or none if it is that of the last path
// of the same buffer.
func (c *contexts) path(sigs *[levels]signature, last *path, s *training) *path {
	if last != nil && last.window == sigs[levelWindow] && last.edition == c.edition {
		return last
	}
	f := c.present[sigs[levelWindow]]
	if f != nil && f.path != nil && f.path.edition == c.edition {
		return f.path
	}
	edition := c.edition
	var followers [levels]*follower
	var parent *follower // of the level before, if it is new
	for level, sig := range sigs {
		f := c.find(sig)
		if f == nil {
			f = s.follower(sig, level, parent)
			c.present[sig] = f
			parent = f
		} else {
			parent = nil
		}
		followers[level] = f
	}
	inOld := c.edition != edition // the first of them
	for level := levelWindow - 1; level >= 0; level-- {
		if f := followers[level]; int(f.level) > level && f != followers[level+1] {
			c.divide(sigs, &followers, level)
		}
	}
	f = followers[levelWindow]
	if f.path == nil {
		f.path = new(path)
	}
	if *f.path = (path{sigs[levelWindow], followers, c.edition}); inOld {
		f.path.edition = 0
	}
	return f.path
}

// find returns the follower of a context that was met in the present generation or in the old one, and nil for others.
// The context belongs to the present one from now on.
func (c *contexts) find(sig signature) *follower {
	if f := c.present[sig]; f != nil {
		return f
	}
	if len(c.present) >= c.most {
		c.old, c.present = c.present, make(map[signature]*follower)
		c.edition++
	}
	f := c.old[sig]
	if f != nil {
		c.present[sig] = f
	}
	return f
}

// divide gives a context its own follower, which the levels before it take as well if they shared its old one: it was
// met for the first time together with another context of the next level.
func (c *contexts) divide(sigs *[levels]signature, followers *[levels]*follower, level int) {
	shared := followers[level]
	own := new(follower)
	*own = *shared
	own.level, own.path = int8(level), nil
	if t := shared.trigger; level < levelSite {
		own.trigger = nil
	} else if t != nil {
		own.trigger = new(trigger)
		*own.trigger = *t
	}
	for ; level >= 0 && followers[level] == shared; level-- {
		followers[level] = own
		for _, generation := range []map[signature]*follower{c.present, c.old} {
			if sig := sigs[level]; generation[sig] != nil {
				generation[sig] = own
			}
		}
	}
	c.edition++
}
