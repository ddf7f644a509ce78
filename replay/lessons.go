package replay

import "pinwheel/predictor"

// learner is a predictor that can tell what it has learned.
type learner interface{ Lessons() predictor.Lessons }

// forRank returns the options for the helper of one rank.
func (o *Options) forRank(rank int) *Options {
	if o.Lessons == nil {
		return o
	}
	of := *o
	of.lessons = o.Lessons(rank)
	return &of
}

// tellLearned passes on what the ranks have learned.
func (e *engine) tellLearned() {
	for _, r := range e.ranks {
		if r.learned != nil {
			r.learned()
		}
	}
}
