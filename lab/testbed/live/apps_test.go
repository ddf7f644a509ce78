package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/report"
	"pinwheel/internal/tools/compare"
)

func TestApplicationsAreJudged(t *testing.T) {
	good := compare.Run{PeakBytes: 1 << 20, AvgPinnedBytes: 1 << 20, Own: &report.Rank{Uses: 3, Hits: 2}}
	all := map[compare.Mode]appRun{}
	for _, mode := range compare.Modes {
		all[mode] = appRun{Run: good, Results: []string{"energy 1.25", "force 2"}}
	}
	if why := judgeApp(all); why != "" {
		t.Errorf("good runs: %s", why)
	}
	for _, c := range []struct {
		mode   compare.Mode
		change func(*appRun)
		want   string
	}{
		{compare.Pinwheel, func(r *appRun) { r.Run.Failed = "exit status 59" }, "with Pinwheel: exit status 59"},
		{compare.None, func(r *appRun) { r.Run.Failed = "exit status 1" }, "with no cache: exit status 1"},
		{compare.Cache, func(r *appRun) { r.Run.PeakBytes = 0 }, "did not use the device"},
		{compare.Pinwheel, func(r *appRun) { r.Results = []string{"energy 1.26", "force 2"} },
			`"energy 1.26", not "energy 1.25"`},
		{compare.Pinwheel, func(r *appRun) { r.Results = r.Results[:1] }, `lacks "force 2"`},
		{compare.None, func(r *appRun) { r.Results = append(slices.Clone(r.Results), "NaN") }, `has also "NaN"`},
		{compare.Pinwheel, func(r *appRun) { r.Run.Own = nil }, "no rank has written a report"},
		{compare.Pinwheel, func(r *appRun) { r.Run.Own = &report.Rank{Uses: 3, Failed: 1} }, "1 uses failed"},
	} {
		runs := maps.Clone(all)
		r := runs[c.mode]
		c.change(&r)
		runs[c.mode] = r
		if got := judgeApp(runs); !strings.Contains(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// What a run printed and wrote is its result, without times; a run that computed nothing has none.
func TestResultsOfApplications(t *testing.T) {
	qe := applications[slices.IndexFunc(applications, func(a application) bool { return a.name == "qe" })]
	output := "     total cpu time spent up to now is        1.9 secs\n" +
		"!    total energy              =    -506.15424641 Ry\n" +
		"     PWSCF        :     20.19s CPU\n     Total force =     0.192843     Total SCF correction =     0.001687\n"
	got, err := qe.results(output, t.TempDir())
	if err != nil || len(got) != 2 || !strings.HasPrefix(got[0], "!    total energy") {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := qe.results("     PWSCF        :     20.19s CPU\n", t.TempDir()); err == nil {
		t.Errorf("an output without a result has %q", got)
	}
	dir := t.TempDir()
	foam := application{files: []string{"processor*/U"}}
	if got, err := foam.results("", dir); err == nil {
		t.Errorf("without a file there is %q", got)
	}
	for i, p := range []string{"processor0", "processor1"} {
		if err := os.Mkdir(filepath.Join(dir, p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p, "U"), []byte{byte('0' + i), '\n'}, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := foam.results("", dir); err != nil || strings.Join(got, "|") != "0||1|" {
		t.Errorf("%q, %v", got, err)
	}
}

// Each has its inputs, and nothing else has.
func TestApplicationsHaveInputs(t *testing.T) {
	entries, err := os.ReadDir("../apps")
	if err != nil {
		t.Fatal(err)
	}
	var have, want []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join("../apps", e.Name(), "prepare.sh")); err != nil {
			t.Error(err)
		}
		have = append(have, e.Name())
	}
	for _, a := range applications {
		want = append(want, a.name)
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("inputs of %v, applications are %v", have, want)
	}
}
