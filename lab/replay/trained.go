package replay

import "pinwheel/predictor"

// learner is a predictor that can tell what it has learned.
type learner interface{ Trained() predictor.Trained }

// forRank returns the options for the helper of one rank.
func (o *Options) forRank(rank int) *Options {
	if o.Trained == nil {
		return o
	}
	of := *o
	of.trained = o.Trained(rank)
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
