package report

import (
	"context"

	"pinwheel/lab/replay"
)

// budgetPolicy names pinwheel where it may pin no more than the oracle does.
const budgetPolicy = "pinwheel, budget"

// budgetRun replays policy pinwheel with no more room on any rank than the
// oracle needs on the rank where it needs most, and a thirty-second: buffers
// side by side share pages, which a budget counts for each of them. What pinwheel does not know
// yet it keeps, so that in a short run its peak is that of its learning
// phase; under a budget it gives that up.
func budgetRun(ctx context.Context, path string, free *Run) (*Run, error) {
	o := free.options
	o.Policies = []string{replay.Pinwheel}
	o.BudgetBytes, o.BudgetHelped = 0, true
	for rank := range free.ranks() {
		o.BudgetBytes = max(o.BudgetBytes, free.find(replay.Oracle, rank).PeakPinnedBytes)
	}
	o.BudgetBytes += o.BudgetBytes / 32
	return replayFile(ctx, path, o)
}
