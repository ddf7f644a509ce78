package replay

import (
	"context"
	"slices"
	"testing"

	"pinwheel/trace"
)

// FT uses two of its three arrays at a time. With no more room than that, the
// policies with a helper must give one back instead of keeping what they
// don't know yet.
func TestPoliciesWithAHelperKeepWithinTheBudget(t *testing.T) {
	f, err := trace.Open("../../results/traces/ft.B.4.pwt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	compare := func(o Options) []Result {
		rs, err := Compare(context.Background(), o, f)
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(rs, func(r Result) bool { return r.Rank == AllRanks })
	}
	var budget int64
	for _, r := range compare(Options{Policies: []string{Oracle}}) {
		budget = max(budget, r.PeakPinnedBytes)
	}
	free := compare(Options{Policies: []string{Pinwheel}, BudgetBytes: budget})
	if free[0].PeakPinnedBytes <= budget {
		t.Fatalf("without BudgetHelped the peak is %d: the budget of %d is no constraint", free[0].PeakPinnedBytes, budget)
	}
	for _, r := range compare(Options{Policies: []string{Paper, Pinwheel}, BudgetBytes: budget, BudgetHelped: true}) {
		if r.PeakPinnedBytes > budget {
			t.Errorf("%s on rank %d pins %d bytes, the budget is %d", r.Policy, r.Rank, r.PeakPinnedBytes, budget)
		}
	}
}
