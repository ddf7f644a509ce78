package schedule

import (
	"pinwheel/predictor"
	"pinwheel/verbs"
)

// The policies that do what the helper thread of Li et al., CF'11, does. They differ in what becomes of a deadline that
// has passed: the comment of predictor.Paper.
const (
	Paper       = "paper"
	PaperStrict = "paper-strict"
)

// PaperItemNs is t_hash + t_cache, or t_insert + t_update, of their inequality 1: what one item of DQ or RQ takes in
// addition to the registration itself. It is the same live and in a replay. Uses take 1.5 to 2.1 us of a helper (make
// bench-helper).
const PaperItemNs = 1_500 // 1.5 us

// NewPaper returns what predicts under one of these policies, and what its Scheduler is to be made with; ok is false for
// other policies.
func NewPaper(policy string, o predictor.Options, c verbs.Costs) (p predictor.Predictor, so SchedulerOptions, ok bool) {
	so = SchedulerOptions{Costs: c, ItemNs: PaperItemNs, Alternates: true}
	switch policy {
	case Paper:
		return predictor.NewPaper(o), so, true
	case PaperStrict:
		return predictor.NewPaperStrict(o), so, true
	}
	return nil, SchedulerOptions{}, false
}

// IsPaper tells these policies from others.
func IsPaper(policy string) bool { return policy == Paper || policy == PaperStrict }
