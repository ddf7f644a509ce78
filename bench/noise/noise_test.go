package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/report"
	"pinwheel/testbed/live/runlog"
)

// quanta are 1000 of 100 us at least, which took so much longer in all.
func quanta(extraNs float64) figures {
	return figures{N: 1000, SumNs: 1000*100_000 + extraNs, LeastNs: 100_000}
}

// round is one with registrations of 2 ms, half of them in waits, and 0.3 ms of noise beyond them.
func round(t *testing.T, n int) (without_, with_ run) {
	t.Helper()
	own := report.Rank{Seconds: 0.1001, HelperCPUNs: 2_200_200, HelperActionNs: 2_000_000, HelperRegs: 10,
		HelperDeregs: 10, InWaits: 10}
	if err := json.Unmarshal([]byte(`{"counts":[[130,10]],"max_ns":40000}`), &own.Starts); err != nil {
		t.Fatal(err)
	}
	without_ = run{Row: "shared", Mode: without, Round: n, Load: 2,
		Ranks: []rank{{Quanta: quanta(500_000), CPU: quanta(0), Waits: figures{N: 10, SumNs: 20_000, P50Ns: 2000}}}}
	with_ = run{Row: "shared", Mode: with, Round: n, Load: 2, Own: &own,
		Ranks: []rank{{Quanta: quanta(1_800_000), CPU: quanta(100_000), Waits: figures{N: 10, SumNs: 70_000, P50Ns: 2000}}}}
	return without_, with_
}

func TestNoiseIsWhatIsBeyondRegistrations(t *testing.T) {
	a, b := round(t, 0)
	got := pair{&b, &a}.noise()
	want := noise{without: 0.005, with: 0.018, registrations: 0.01, registrationsAll: 0.02, beyond: 0.003,
		slower: 0.001, helper: 0.002}
	for _, v := range [][2]float64{{got.without, want.without}, {got.with, want.with},
		{got.registrations, want.registrations},
		{got.registrationsAll, want.registrationsAll}, {got.beyond, want.beyond},
		{got.slower, want.slower}, {got.helper, want.helper}} {
		if math.Abs(v[0]-v[1]) > 1e-9 {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestTablesComeFromTheFileOfRuns(t *testing.T) {
	dir := t.TempDir()
	c := tableCmd{files: files{Runs: filepath.Join(dir, "runs.jsonl")},
		Into: filepath.Join(dir, "noise.md"), Which: "noise"}
	var s state
	if err := s.Open(c.Runs, head{Head: runlog.Head{Build: "one", Version: "v1"}}); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		a, b := round(t, n)
		for _, r := range []run{{Row: "shared", Mode: with, Round: n, Failed: "seeded"}, a, b} {
			if err := s.Add(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Run(); err != nil {
		t.Fatal(err)
	}
	text := read(t, c.Into)
	for _, want := range []string{
		"| shared | 3 | 0.50 % [0.50, 0.50] | 1.80 % [1.80, 1.80] | 1.00 % [1.00, 1.00] |" +
			" 2.00 % [2.00, 2.00] | 0.30 % [0.30, 0.30] |",
		"| 0.10 % [0.10, 0.10] | 0.20 % [0.20, 0.20] | 0.30 % [0.30, 0.30] |",
		"| shared | mean | 2.0 [2.0, 2.0] | 7.0 [7.0, 7.0] | 5.0 [5.0, 5.0] | 50 % |",
		"| on its rank's, which works | 30 | 20.5 | 20.5 | 40.0 |",
		"Pinwheel v1,", "run: 2.0 (median)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestOutputOfTheProgramIsRead(t *testing.T) {
	all := measuredBy("a warning\n" + `{"rank":0,"quanta":{"n":3,"sum_ns":300,"least_ns":90},"waits":{"n":1}}` +
		"\n{torn\nquanta: 1 ranks, data right\n")
	if len(all) != 1 || all[0].Quanta != (figures{N: 3, SumNs: 300, LeastNs: 90}) || all[0].Waits.N != 1 {
		t.Errorf("%+v", all)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
