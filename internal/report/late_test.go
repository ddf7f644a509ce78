package report

import (
	"strings"
	"testing"

	"pinwheel/schedule"
)

func TestReportSaysWhyUsesWereLate(t *testing.T) {
	given := func(change func(*Rank)) Rank {
		r := Rank{Size: 1, VerbsUsed: true, Policy: "pinwheel", Helper: "on an idle core (auto)", Mapping: "bpf",
			Seconds: 13.9, Uses: 84, First: 42, HelperDeregs: 34}
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		rank Rank
		want string // "": nothing is said
	}{
		"nwchem": {given(func(r *Rank) { r.Late, r.LateWhy.GoneOn = 42, 34 }),
			"\n42 of 42 uses after the first were late, by what became of the buffer: 34 released after the program had gone on" +
				" without it; 8 dropped as their mapping had changed, evicted for room, or registered before in other parts or" +
				" with other access rights.\n"},
		"all causes": {given(func(r *Rank) {
			r.Late, r.Predictions = 22, 9
			r.LateWhy = schedule.LateUses{GoneOn: 2, AtOnce: 3, OnDemand: 7, Sooner: 4, Slow: 6}
		}),
			": 2 released after the program had gone on without it; 3 released with" +
				" nothing predicted; 7 released because keeping it would have cost more than the wait; 4 needed sooner than predicted;" +
				" 6 due, and the helper was not in time.\n"},
		"few":       {given(func(r *Rank) { r.Uses, r.Late, r.LateWhy.Slow = 542, 4, 4 }), ""},
		"none":      {given(func(*Rank) {}), ""},
		"on demand": {given(func(r *Rank) { r.Late, r.Policy = 42, "on-demand" }), ""},
	} {
		var j Job
		j.Add(c.rank)
		var text strings.Builder
		if err := j.Write(&text); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(text.String(), " late, by"); got != (c.want != "") || !strings.Contains(text.String(), c.want) {
			t.Errorf("%s: want %q in\n%s", name, c.want, text.String())
		}
	}
}

func TestReportSaysWhatPinwheelTakesForItself(t *testing.T) {
	r := Rank{Size: 1, VerbsUsed: true, Policy: "pinwheel", Helper: "on an idle core (auto)", Mapping: "bpf", Uses: 400,
		First: 4, Hits: 396, CPUNs: 1e9, HelperCPUNs: 15e6, HelperRegisterNs: 5e6, HelperWakeups: 215, ServerCPUNs: 12e6,
		OpeningCPUNs: 8e6, RegisterNs: 8e6, FirstUsesNs: 1e6, PathNs: 2500, PathSamples: 7}
	want := "Beside registrations, Pinwheel itself took 13.0 ms, 1.30 % of the program's processor time (0.2 % is the goal):" +
		" 1.00 % by 215 looks of the helper, 0.20 % by the server, 0.10 % on the path of 400 uses; and once, to begin, 0.80 %.\n"
	for cpuNs, says := range map[int64]bool{1e9: true, 10e9: false} {
		r.CPUNs = cpuNs
		var j Job
		j.Add(r)
		var text strings.Builder
		if err := j.Write(&text); err != nil || strings.Contains(text.String(), want) != says ||
			strings.Contains(text.String(), "Beside registrations") != says {
			t.Errorf("%d ns: %v\n%s", cpuNs, err, text.String())
		}
	}
}
