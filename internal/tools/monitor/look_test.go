package monitor

import (
	"encoding/json"
	"testing"
	"time"
)

// The names are documented, and programs rely on them.
func TestJSONHasTheNamesOfTheMetrics(t *testing.T) {
	share, limit := int64(4096), 0.02
	l := Look{
		Time: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Host: "n\x1b[2J",
		Jobs: []Job{{ID: "z"}, {ID: "a", BudgetBytes: &share, Ranks: []Rank{
			{Rank: 1, PID: 7, Program: "b\nc", PinnedBytes: 2, ShareBytes: &share, Within05: 1, Within5: 3},
			{Rank: 0, PID: 9, PinnedBytes: 1, Helper: Helper{Running: true, ShareLimit: &limit}},
		}}},
	}
	l.Jobs[1].Ranks[0].Predictions = 4
	l.tidy()
	l.Jobs[1].Ranks = []Rank{}
	got, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time":"2026-03-01T12:00:00Z","host":"n\\x1b[2J","jobs":[{"job":"a","node_budget_bytes":4096,"pinned_bytes":3,"ranks":[` +
		`{"rank":0,"pid":9,"program":"","manager":0,"start_time_s":0,"run_s":0,"age_s":0,"pinned_bytes":1,"peak_pinned_bytes":0,"share_bytes":null,` +
		`"hits":0,"first_regs":0,"late_uses":0,"helper_regs":0,"helper_deregs":0,"stall_ns":0,` +
		`"cost":{"share":0,"again_ns":0,"wait_ns":0,"demand_ns":0,"helper_ns":0,"price_ns":0},` +
		`"helper":{"running":true,"parked":false,"processor":0,"shared":false,"share_limit":0.02,"helper_cpu_ns":0,"helper_register_ns":0,"wakeups":0},` +
		`"predictions":0,"err_0_5":0,"err_5":0,"predictions_within_0_5":0,"predictions_within_5":0},` +
		`{"rank":1,"pid":7,"program":"b\\nc","manager":0,"start_time_s":0,"run_s":0,"age_s":0,"pinned_bytes":2,"peak_pinned_bytes":0,"share_bytes":4096,` +
		`"hits":0,"first_regs":0,"late_uses":0,"helper_regs":0,"helper_deregs":0,"stall_ns":0,` +
		`"cost":{"share":0,"again_ns":0,"wait_ns":0,"demand_ns":0,"helper_ns":0,"price_ns":0},` +
		`"helper":{"running":false,"parked":false,"processor":0,"shared":false,"share_limit":null,"helper_cpu_ns":0,"helper_register_ns":0,"wakeups":0},` +
		`"predictions":4,"err_0_5":0.25,"err_5":0.75,"predictions_within_0_5":1,"predictions_within_5":3}]},` +
		`{"job":"z","node_budget_bytes":null,"pinned_bytes":0,"ranks":[]}]}`
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
