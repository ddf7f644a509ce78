package predictor

// maxContexts bounds the memory of a program whose contexts never repeat. Contexts
// are kept in two generations of half as many: when the present one is full it
// becomes the old one, and contexts of the old one that were not seen since are
// forgotten.
const maxContexts = 1 << 15

// contexts know what followed each signature: since a buffer's role is part of it, the next need of
// that buffer.
type contexts struct {
	present, old map[signature]*follower
}

// follower is what followed one context.
type follower struct {
	seen    bool
	seeded  bool    // its gaps are another run's
	unsure  int     // how many gaps of this run are to come until those of another run are checked by them
	gaps    gaps    // from the end of the use to the next need
	cold    bool    // the only gap led through code that ran for the first time
	hits    int     // predictions in a row that were met
	trigger trigger // of specific contexts
}

func newContexts() contexts { return contexts{present: make(map[signature]*follower)} }

// follower returns what is known of a context.
func (c *contexts) follower(sig signature, s *seeds) *follower {
	if f := c.present[sig]; f != nil {
		return f
	}
	if len(c.present) >= maxContexts/2 {
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
