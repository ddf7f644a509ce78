package report

import (
	"strings"
	"testing"
)

func TestReportSaysWhatTheBudgetWasSpentOn(t *testing.T) {
	rank := func(c Cost) Rank {
		return Rank{Size: 2, VerbsUsed: true, Policy: "pinwheel", Helper: "on an idle core (auto)", Mapping: "bpf",
			Seconds: 10, Uses: 20, First: 2, Hits: 18, HelperDeregs: 9, Cost: c}
	}
	both := rank(Cost{Share: .005, AgainNs: 20e6, WaitNs: 10e6, DemandNs: 8e6, HelperNs: 2e6, PriceNs: 4500})
	other := rank(Cost{Share: .005})
	other.Rank = 1
	for name, c := range map[string]struct {
		ranks []Rank
		want  string
	}{
		"all": {[]Rank{both, other}, "\nCompared with a cache, Pinwheel cost 0.20 % of the run time (PINWHEEL_COST allows 0.5 % of" +
			" that and of one second more): 0.10 % registering again, 0.05 % waiting for registrations under way," +
			" 0.04 % registering on demand," +
			" 0.01 % the helper on the core of its rank; the last MiB that was saved for a second cost 0.0045 ms.\n"},
		"nothing spent": {[]Rank{other}, "cost 0.00 % of the run time (PINWHEEL_COST allows 0.5 % of that and of one second more).\n"},
		"policy paper":  {[]Rank{rank(Cost{AgainNs: 1e8})}, "cost 1.00 % of the run time: 1.00 % registering again.\n"},
	} {
		if got := write(t, c.ranks...); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in\n%s", name, c.want, got)
		}
	}
	if got := write(t, rank(Cost{})); strings.Contains(got, "Compared with a cache") {
		t.Errorf("leave-pinned has a cost:\n%s", got)
	}
}
