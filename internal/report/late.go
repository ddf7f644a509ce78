package report

import (
	"fmt"
	"strings"
)

// fewLate is the share of the needs after the first, as its reciprocal, below which late ones are not worth a sentence.
const fewLate = 100

// lateLine says why uses were late, "" if few were, or if the policy has them be so.
func (r *Rank) lateLine() string {
	late := r.LateUses()
	if late == 0 || fewLate*late < r.Uses-r.First || r.Policy == "on-demand" || r.Policy == "disabled" {
		return ""
	}
	l := &r.LateWhy
	var causes []string
	for _, c := range []struct {
		n    int64
		says string
	}{
		{l.GoneOn, "released after the program had gone on without it"},
		{l.AtOnce, "released with nothing predicted"},
		{l.OnDemand, "released because keeping it would have cost more than the wait"},
		{l.Sooner, "needed sooner than predicted"},
		{l.Slow, "due, and the helper was not in time"},
		{int64(late) - l.Sum(), "dropped as their mapping had changed, evicted for room, or registered before" +
			" in other parts or with other access rights"},
	} {
		if c.n > 0 {
			causes = append(causes, fmt.Sprintf("%d %s", c.n, c.says))
		}
	}
	were := "were"
	if late == 1 {
		were = "was"
	}
	return fmt.Sprintf("%d of %s after the first %s late, by what became of the buffer: %s", late,
		count(r.Uses-min(r.First, r.Uses), "use"), were, strings.Join(causes, "; "))
}
