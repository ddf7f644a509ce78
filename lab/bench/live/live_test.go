package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/report"
	"pinwheel/internal/tools/compare"
	"pinwheel/internal/tools/launch"
	"pinwheel/lab/kit"
	"pinwheel/lab/testbed/live/stack"
)

func TestPatternsChooseRows(t *testing.T) {
	for _, c := range []struct {
		patterns []string
		want     []string
	}{
		{[]string{"openmpi-ucx/halo.8.2.*", "*/halo.8.4"}, []string{"openmpi-ucx/halo.8.4", "openmpi-ucx/halo.8.2.idle",
			"openmpi-ucx/halo.8.2.slow", "openmpi-ucx/halo.8.2.idle.slow", "openmpi-ucx/halo.8.2.idle.uffd",
			"openmpi-ucx/halo.8.2.idle.none"}},
		{[]string{"*/ft.B.3"}, nil},
	} {
		rows, err := (&runCmd{Rows: c.patterns}).chosen()
		var names []string
		for _, r := range rows {
			names = append(names, r.String())
		}
		if !slices.Equal(names, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%q: %q, %v", c.patterns, names, err)
		}
	}
	seen := map[string]bool{}
	for _, r := range allRows {
		if seen[r.String()] {
			t.Errorf("%s is there twice", r)
		}
		seen[r.String()] = true
	}
}

func TestRowsOfPapersAreMeasuredIfAskedFor(t *testing.T) {
	all, err := (&runCmd{}).chosen()
	if err != nil || !slices.Equal(all, allRows) {
		t.Errorf("by default %v, %v", all, err)
	}
	rows, err := (&runCmd{Rows: []string{"*/fresh.4M.2.idle*", "openmpi-ucx/latency.17K.2.idle"}}).chosen()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v, %v", rows, err)
	}
	for i, want := range [][]compare.Mode{compare.AllModes, paperModes, {compare.Cache}} {
		if got := rows[i].modes(); !slices.Equal(got, want) {
			t.Errorf("%s is measured in %v, want %v", rows[i], got, want)
		}
	}
	for program, want := range map[string][]any{
		"fresh.4M": {"fresh", uint64(4 << 20), 10, 50}, "latency.17K": {2000, uint64(17 << 10)}, "latency.8B": {2000, uint64(8)},
		"latency.1M": {62, uint64(1 << 20)}, "latency.16M": {10, uint64(16 << 20)},
	} {
		if _, got := (row{program: program}).own(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s has arguments %v, want %v", program, got, want)
		}
	}
}

func TestMessagesOfPapersStandBesideTheCache(t *testing.T) {
	var s state
	const row = "openmpi-ucx/fresh.4M.2.idle"
	add := func(row string, m compare.Mode, round int, output string, peak float64) {
		r := run(m, round, 1)
		r.PeakBytes, r.Output = peak*(1<<20), output
		s.Lines = append(s.Lines, line{key: key{row, "root"}, Run: r, MessageNs: messageNs(r.Output)})
	}
	for round, ns := range []int{2_097_152, 4_194_304} {
		add(row, compare.Cache, round, fmt.Sprintf("overlap: %d ns\noverlap: 2 ranks, data right\n", ns), 300)
		add(row, compare.Pinwheel, round, fmt.Sprintf("overlap: %d ns\n", ns+ns/4), 150)
		add(row+".bounce", compare.Cache, round, fmt.Sprintf("latency: %d ns\n", 2*ns), 100)
	}
	add("openmpi-ucx/ft.B.2", compare.Cache, 0, "data right\n", 300)
	failed := run(compare.Pinwheel, 2, 1)
	failed.Failed = "status 3"
	s.Lines = append(s.Lines, line{key: key{row, "root"}, Run: failed})
	text := s.paper()
	for _, want := range []string{
		"| fresh.4M.2.idle | the transport's cache | 2 | 3145.7 us |  | 1333 MB/s | 300 MiB |  |\n",
		"| fresh.4M.2.idle | Pinwheel | 2 | 3932.2 us | +25.0 % (+25.0 % to +25.0 %, 50 % interval) | 1067 MB/s | 150 MiB | 2.00 (2.00 to 2.00, 50 % interval) |\n",
		"| fresh.4M.2.idle | nobody: copied | 2 | 6291.5 us | +100.0 % (+100.0 % to +100.0 %, 50 % interval) | 667 MB/s | 100 MiB | 3.00",
		"- openmpi-ucx/fresh.4M.2.idle, round 3, Pinwheel: status 3\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "ft.B") {
		t.Errorf("a program that says nothing of messages has a row:\n%s", text)
	}
}

func TestRowsOfNPBAreLeftOutWithoutIt(t *testing.T) {
	for _, c := range []struct{ npb, program, want string }{
		{"", "ft.B", "NPB=DIR has its programs"}, {t.TempDir(), "ft.B", "ft.B.x (NPB 3.4-MPI: make ft CLASS=B)"},
	} {
		command, missing, err := (&runCmd{NPB: c.npb}).command(row{stack: ucx, program: c.program, ranks: 2}, stack.All[0])
		if err != nil || command != nil || !strings.Contains(missing, c.want) {
			t.Errorf("%q: %q, %q, %v", c.npb, command, missing, err)
		}
	}
}

// The device reads its costs where it is opened; see lab/testbed/softverbs/cost.c.
func TestSlowDeviceCostsWhatUCXAssumes(t *testing.T) {
	want := []string{"SOFTVERBS_REGISTER=16000,250", "SOFTVERBS_DEREGISTER=8000,125"}
	if got := slowDevice(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsLeftOutIsNotedOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs.jsonl")
	for range 2 {
		var s state
		if err := s.Open(path, kit.Head{Build: "one"}); err != nil {
			t.Fatal(err)
		}
		for _, row := range []string{"a/ft.B.2", "a/is.B.2", "a/lammps.2"} {
			if err := s.leaveOut(row, "no "+row[2:4]+"?"); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
	}
	var s state
	if err := s.Read(path); err != nil || len(s.Lines) != 3 || len(s.keys()) != 0 {
		t.Fatalf("%v, %+v", err, s.Lines)
	}
	s.Lines = append(s.Lines, line{key: key{"a/is.B.2", "root"}, Run: run(compare.Cache, 0, 1)}) // NPB has come
	if text := s.markdown(); !strings.Contains(text, "\nLeft out:\n\n- a/ft.B.2: no ft?\n- a/lammps.2: no la?\n") {
		t.Error(text)
	}
}

func run(mode compare.Mode, round int, pinned float64) *compare.Run {
	return &compare.Run{Mode: mode, Round: round, Ranks: 2, Sampled: 2,
		AvgPinnedBytes: pinned * (1 << 20), CPUNs: 1e9, Seconds: 1}
}

func TestMeasurementGoesOnWhereItWas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "runs.jsonl")
	one, two := kit.Head{Build: "one"}, kit.Head{Build: "two"}
	var s state
	if err := s.Open(path, one); err != nil {
		t.Fatal(err)
	}
	r, other := key{"openmpi-ucx/halo.8.2", "root"}, key{"openmpi-ucx/halo.8.2", "nobody"}
	failed := run(compare.None, 0, 1)
	failed.Failed = "status 1"
	for _, l := range []line{{key: r, Run: run(compare.Cache, 0, 3)}, {key: r, Run: failed}} {
		if err := s.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(`{"row":"openmpi-ucx/halo`); err != nil { // it is killed
		t.Fatal(err)
	}
	s.Close()

	s = state{}
	if err := s.Open(path, one); err != nil {
		t.Fatal(err)
	}
	if !s.has(r, compare.Cache, 0) || s.has(r, compare.None, 0) || s.has(r, compare.Cache, 1) ||
		s.has(other, compare.Cache, 0) {
		t.Errorf("%+v", s.Lines)
	}
	if err := s.Add(line{key: r, Run: run(compare.None, 0, 1)}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	var again state
	if err := again.Read(path); err != nil || len(again.Lines) != 3 || !again.has(r, compare.None, 0) {
		t.Errorf("%v, %+v", err, again.Lines)
	}

	s = state{}
	if err := s.Open(path, two); err != nil || len(s.Lines) != 0 {
		t.Errorf("another build: %v, %+v", err, s.Lines)
	}
	s.Close()
	again = state{}
	if err := again.Read(path); err != nil || again.Head.Build != "two" || len(again.Lines) != 0 {
		t.Errorf("another build: %v, %+v", err, again)
	}
}

func TestTablesStandBetweenTheMarkers(t *testing.T) {
	captured := 0.9
	var s state
	s.Head = kit.Head{Version: "v1", Date: "2026-01-02", Software: []string{"mpich 4"}}
	idle, nobody := key{"openmpi-ucx/ft.A.2.idle", "root"}, key{"openmpi-ucx/ft.A.2.idle", "nobody"}
	for round := range 6 {
		own, paper := run(compare.Pinwheel, round, 150), run(compare.Paper, round, 150)
		own.Own = &report.Rank{Uses: 11, First: 1, Late: 1, Waited: 1, Seconds: 1, Mapping: "bpf",
			Cost: report.Cost{Share: .005, AgainNs: 4e6, WaitNs: 2e6}}
		paper.Own = &report.Rank{Uses: 11, First: 1, Late: 3, Seconds: 1, Mapping: "bpf", Cost: report.Cost{AgainNs: 20e6}}
		own.Seconds = 1.02
		for _, r := range []*compare.Run{
			run(compare.Cache, round, 200), run(compare.None, round, 100), run(compare.OnDemand, round, 100), paper, own,
		} {
			s.Lines = append(s.Lines, line{key: idle, Load: 1, Run: r})
			if round == 0 {
				s.Lines = append(s.Lines, line{key: nobody, Load: 1, Run: r})
			}
		}
	}
	failed := run(compare.None, 6, 1)
	failed.Failed = "exit status 3"
	s.Lines = append(s.Lines, line{key: idle, Replay: &replayed{CapturedAvg: &captured, Late: 0.01}},
		line{key: idle, Run: failed})
	text := s.markdown()
	const pinwheels = "| root | Pinwheel | 6 | 150 | **0.50 (0.50 to 0.50)** | +0.0 % (+0.0 % to +0.0 %) |" +
		" **+2.0 % (+2.0 % to +2.0 %)** | 20.00 % | 0.30 % of 0.5 % | bpf | no cache, policy on-demand, policy paper |"
	for _, want := range []string{
		"Pinwheel v1, 2026-01-02.", "mpich 4.",
		"| openmpi-ucx/ft.A.2.idle | root | the transport's cache | 6 | 200 |  | 1.00 s | 1.00 s |  |  |  |  |",
		"| openmpi-ucx/ft.A.2.idle | root | policy on-demand | 6 | 100 | 1.00 (1.00 to 1.00) |",
		"+0.0 % (+0.0 % to +0.0 %) | 30.00 % | 1.00 % | bpf |  |\n", // paper, which nothing bounds
		"| openmpi-ucx/ft.A.2.idle " + pinwheels,
		"| openmpi-ucx/ft.A.2.idle | nobody | Pinwheel | 1 | 150 | 0.50 (one round) | +0.0 % (one round) |",
		" | 0.90 | 1.00 % |\n",
		"- openmpi-ucx/ft.A.2.idle, round 7, no cache: exit status 3",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for l := range strings.Lines(text) {
		if len(l) > 101 && l[0] != '|' {
			t.Errorf("a long line: %s", l)
		}
	}
	doc, err := os.ReadFile("../../../results/live/README.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tables.Between(string(doc)); err != nil {
		t.Error(err)
	}
}

// The headline of the project's README is that of results/live/runs.jsonl.
func TestProjectReadmeHasTheHeadline(t *testing.T) {
	var s state
	if err := s.Read("../../../results/live/runs.jsonl"); err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := s.headline()
	if rows := strings.Count(want, " MiB | "); rows != 2*len(headlineRows) {
		t.Errorf("%d figures in\n%s", rows, want)
	}
	if got, err := headlineMarkers.Between(string(doc)); err != nil || got != want {
		t.Errorf("run make bench-live-table: README.md has\n%s\nresults/live/runs.jsonl gives\n%s (%v)", got, want, err)
	}
}

func TestTenNumbersAreThoseOfTheRawData(t *testing.T) {
	want, err := headlines("../../../results")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("../../../results/" + headlinesFile); err != nil || string(got) != want {
		t.Errorf("run make results-headlines: %v", err)
	}
	if n := strings.Count(want, ".jsonl) |\n"); n != 9 { // and what a hit takes
		t.Errorf("%d figures in\n%s", n, want)
	}
}

func TestRunMustVerifyItsDataOnTheDevice(t *testing.T) {
	for output, want := range map[string]string{
		"halo: 2 ranks, data right\n":    "",
		" Verification    = SUCCESSFUL":  "",
		" Verification = UNSUCCESSFUL\n": "did not verify",
		"DATA WRONG":                     "did not verify",
		"":                               "did not verify",
	} {
		r := run(compare.Cache, 0, 1)
		r.PeakBytes, r.Output = 1, output
		if judge(r); !strings.Contains(r.Failed, want) || (r.Failed == "") != (want == "") {
			t.Errorf("%q: %q", output, r.Failed)
		}
	}
	r := run(compare.Cache, 0, 0)
	r.Output = "data right"
	if judge(r); !strings.Contains(r.Failed, "did not use the device") {
		t.Errorf("%q", r.Failed)
	}
}

func TestReplayOfAllRanksIsPicked(t *testing.T) {
	out := `{"trace":"x","rank":0,"policy":"pinwheel","captured_avg":0.1}
{"trace":"x","rank":-1,"policy":"oracle","captured_avg":1}
{"trace":"x","rank":-1,"policy":"pinwheel","captured_avg":0.75,"needs":110,"first_regs":10,"late_regs":2,"late_waits":1}
`
	got, err := pick([]byte(out))
	if err != nil || got.CapturedAvg == nil || *got.CapturedAvg != 0.75 || got.Late != 0.03 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := pick(nil); err == nil {
		t.Error("nothing was picked")
	}
}

// The meter counts programs in C, C++ and Fortran, under every MPI.
func TestMeterCountsInEveryLanguage(t *testing.T) {
	d, err := stack.OpenDevice("../../../out/softverbs")
	if err != nil {
		t.Skip(err)
	}
	bin, err := filepath.Abs("../../../bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, launch.Meter)); err != nil {
		t.Skipf("%v (make build)", err)
	}
	t.Chdir(t.TempDir())
	_, here, _, _ := runtime.Caller(0)
	programs := filepath.Join(filepath.Dir(here), "../../testbed/programs")
	for _, s := range stack.All {
		if why := s.Missing(d); why != "" {
			t.Log(why)
			continue
		}
		for i, source := range []string{"halo.c", "derived.cc", "transpose.f90", "ring_f08.f90"} {
			program, err := filepath.Abs(source + "." + s.MPI)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Compile(program, filepath.Join(programs, source)); err != nil {
				t.Fatal(err)
			}
			on := stack.Job{Stack: s, Device: d, Ranks: 2, Program: []string{program}}
			if source == "ring_f08.f90" {
				on.Program = append(on.Program, "400") // steps: four take less time than lies between two samples
			}
			on.Environ = []string{"PINWHEEL_WATCH_WAIT=y"} // the same holds of a transpose that waits for nothing
			command, environ := on.Command(filepath.Join(t.TempDir(), "device"))
			j := compare.Job{Request: launch.Request{
				Command: append([]string{"timeout", "60"}, command...), Environ: environ,
				Library: filepath.Join(bin, "libpinwheel.so"),
			}}
			m := compare.Modes[i%len(compare.Modes)]
			r, err := j.Run(m, 0)
			if judge(&r); err != nil || r.Failed != "" || r.Ranks != 2 || r.CPUNs <= 0 || r.Seconds <= 0 {
				t.Errorf("%s, %s, %s: %v, %+v", s.Name, source, m, err, r)
			}
			// Where no core is idle, every use of a short job may be on demand, which needs no watch.
			if m == compare.Pinwheel && (r.Own == nil || r.Own.Uses > r.Own.Demand.Uses && r.Own.Mapping == "") {
				t.Errorf("%s, %s: how changes were noticed: %+v", s.Name, source, r.Own)
			}
		}
	}
}
