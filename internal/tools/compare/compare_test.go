package compare

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pinwheel/internal/report"
	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/launch"
	"pinwheel/internal/tools/launch/launchtest"
)

func TestMain(m *testing.M) { os.Exit(launchtest.Main(m)) }

func TestMeanIsWeighedByTime(t *testing.T) {
	samples := []sample{{0, 100}, {10, 100}, {20, 300}, {30, 300}, {50, 0}}
	for _, c := range []struct {
		begin, end int64
		want       pinned
	}{
		{10, 30, pinned{250, 300, 300}}, {20, 30, pinned{300, 300, 300}}, {-100, 10, pinned{100, 100, 100}},
		{0, 50, pinned{180, 300, 0}}, {60, 70, pinned{}},
	} {
		if got := pinnedBetween(samples, c.begin, c.end); got != c.want {
			t.Errorf("from %d to %d: %v, want %v", c.begin, c.end, got, c.want)
		}
	}
	if got := pinnedBetween(samples[:1], 0, 10); got.mean != 100 {
		t.Errorf("of one sample: %v", got)
	}
}

// What a transport had pinned before its pools grew is not what it pins for itself.
func TestLeastIsAfterThePeak(t *testing.T) {
	samples := []sample{{0, 10}, {10, 20}, {20, 400}, {30, 300}, {40, 380}, {50, 310}}
	if got := pinnedBetween(samples, 0, 50); got.least != 300 {
		t.Errorf("%+v", got)
	}
}

func TestPinnedMemoryIsWhatTheKernelSays(t *testing.T) {
	status := "Name:\tx\nVmLck:\t       4 kB\nVmPin:\t    1024 kB\nVmHWM:\t 9 kB\n"
	if n, ok := pinnedBytes([]byte(status)); n != 1028<<10 || !ok {
		t.Errorf("%d, %v", n, ok)
	}
	if _, ok := pinnedBytes([]byte("Name:\tx\nState:\tZ (zombie)\n")); ok {
		t.Error("a zombie has pinned memory")
	}
	text, err := os.ReadFile("/proc/self/status")
	if _, ok := pinnedBytes(text); err != nil || !ok {
		t.Errorf("%v: %s", err, text)
	}
}

func TestEachModeBeginsARound(t *testing.T) {
	for _, modes := range [][]Mode{Modes, AllModes} {
		first := map[Mode]int{}
		for round := range 2 * len(modes) {
			order := Order(modes, round)
			first[order[0]]++
			if sorted := slices.Sorted(slices.Values(order)); !slices.Equal(sorted, slices.Sorted(slices.Values(modes))) {
				t.Errorf("round %d: %v", round, order)
			}
		}
		for _, m := range modes {
			if first[m] != 2 {
				t.Errorf("%v", first)
			}
		}
	}
}

// sixRounds are of a job that pins so many MiB and takes so much time with Pinwheel.
func sixRounds(cache, none, pinwheel, time float64) (runs []Run) {
	for round := range 6 {
		own := &report.Rank{Uses: 101, First: 1, Late: 1, Waited: 1, Seconds: 1, Mapping: "bpf",
			Cost: report.Cost{Share: 0.005, AgainNs: 4e6, WaitNs: 2e6}, RegisterNs: 5e6, HelperCPUNs: 9e6, HelperRegisterNs: 4e6,
			ServerCPUNs: 3e6, OpeningCPUNs: 15e5, PathNs: 1e4}
		runs = append(runs,
			Run{Mode: Cache, Round: round, Ranks: 2, AvgPinnedBytes: cache * (1 << 20), CPUNs: 1e9,
				Seconds: 1, StartCPUNs: 40e6},
			Run{Mode: None, Round: round, Ranks: 2, AvgPinnedBytes: none * (1 << 20), LeastBytes: 70 << 20,
				CPUNs: 1.1e9, Seconds: 1},
			Run{Mode: Pinwheel, Round: round, Ranks: 2, AvgPinnedBytes: pinwheel * (1 << 20), CPUNs: time * 1e9,
				Seconds: 1, StartCPUNs: 50e6, Own: own,
				Reasons: []string{"No idle core at times"}})
	}
	return append(runs, Run{Mode: Cache, Round: 6}, Run{Mode: None, Round: 6, Failed: "status 1"}) // not whole
}

func TestMeasures(t *testing.T) {
	s, ok := Summarize(sixRounds(200, 100, 120, 1.005))
	if !ok || s.Rounds != 6 || s.Ranks != 2 {
		t.Fatalf("%v, %+v", ok, s)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("captured_live", s.Of(Pinwheel).CapturedLive.Median, 0.8)
	near("what can be saved", s.Savable, 0.5)
	near("the ratio", s.Versus(Pinwheel, Cache).CPU.Median, 1.005)
	near("that to no cache", s.Versus(Pinwheel, None).CPU.Median, 1.005/1.1)
	near("that of no cache", s.Versus(None, Cache).CPU.Median, 1.1)
	near("memory", s.Versus(Pinwheel, Cache).Memory.Median, 0.6)
	near("memory, to no cache", s.Versus(Pinwheel, None).Memory.Median, 1.1)
	near("run time", s.Versus(Pinwheel, Cache).Time.Median, 1)
	near("what can be saved", s.SavableBytes.Median, 100<<20)
	near("what the transport pins for itself", s.TransportBytes.Median, 70<<20)
	near("the ratio without registrations", s.Beyond.Median, 1)
	near("what is added", s.Added.Median, (5e6+5e5+101*1e4)/1e9)
	near("the start", s.StartNs.Median, 5e6)
	near("the opening", s.OpeningNs.Median, 75e4)
	near("late", s.Of(Pinwheel).Late, 0.02)
	near("cost", s.Of(Pinwheel).Cost.Median, 0.003)
	near("cost that is allowed", s.Of(Pinwheel).CostAllowed, 0.005)
	if _, ok := Summarize(nil); ok {
		t.Error("measures of nothing")
	}
}

// Other policies may be missing from a round, as one that fails is; they are judged by the rounds that they have.
func TestOtherPoliciesAreMeasuredBesideEachMode(t *testing.T) {
	runs := sixRounds(200, 100, 120, 1.11)
	for round := range 5 {
		runs = append(runs, Run{Mode: Paper, Round: round, Ranks: 2, AvgPinnedBytes: 110 << 20, CPUNs: 1.05e9, Seconds: 1,
			Own: &report.Rank{Uses: 9, Mapping: []string{"bpf", "uffd"}[round%2], Seconds: 1}})
	}
	s, ok := Summarize(runs)
	if paper := s.Of(Paper); !ok || s.Rounds != 6 || paper.Rounds != 5 ||
		!slices.Equal(paper.Watches, []string{"bpf", "uffd"}) || paper.CapturedLive.Median != 0.9 || paper.Cost == nil ||
		s.Of(OnDemand).Rounds != 0 || s.Of(Cache).Cost != nil {
		t.Errorf("%v, %+v", ok, s)
	}
	if by := s.BeatenBy(); slices.Contains(by, Paper) {
		t.Errorf("five rounds show that Pinwheel was beaten by %v", by)
	}
	runs = append(runs, Run{Mode: OnDemand, Own: &report.Rank{Plain: 9, Seconds: 1}})
	if s, _ := Summarize(runs); s.Of(OnDemand).Rounds != 1 || s.Of(OnDemand).Cost != nil {
		t.Errorf("%+v", s.Of(OnDemand))
	}
	sixth := runs[len(runs)-2]
	sixth.Round = 5
	s, _ = Summarize(append(runs, sixth))
	if by := s.BeatenBy(); !slices.Equal(by, []Mode{None, Paper}) {
		t.Errorf("beaten by %v", by)
	}
	if v := s.Versus(Paper, Cache); math.Abs(v.CPU.Median-1.05) > 1e-9 || math.Abs(v.Memory.Median-0.55) > 1e-9 {
		t.Errorf("%+v", v)
	}
}

func job(site *launchtest.Site, command string) Job {
	return Job{launch.Request{Command: strings.Fields(command), Environ: os.Environ(), Library: site.Library}}
}

func TestEveryModeIsMeasured(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	for _, launcher := range []string{"mpirun -n 1", "mpiexec.hydra -n 1", "srun -n 1"} {
		j := job(site, launcher+" app finalize")
		j.Request.Settings = []string{"PINWHEEL_POLICY=lru"} // what its user asks for
		var said []string
		policies := map[Mode]string{}
		runs, err := j.Rounds(t.Context(), Options{Modes: AllModes, Rounds: 1, Say: func(line string) {
			policies[AllModes[len(said)]], _ = launch.Getenv(site.Lines("environ"), "PINWHEEL_POLICY")
			said = append(said, line)
		}})
		if err != nil || len(runs) != 5 || len(said) != 5 {
			t.Fatalf("%s: %v, %+v, %q", launcher, err, runs, said)
		}
		for _, r := range runs {
			want := map[Mode]string{OnDemand: "on-demand", Paper: "paper", Pinwheel: "lru"}[r.Mode]
			if (r.Own != nil) != (want != "") || want != "" && policies[r.Mode] != want {
				t.Errorf("%s, %s: policy %q, and what Pinwheel reports: %+v", launcher, r.Mode, policies[r.Mode], r.Own)
			}
			if r.Ranks != 1 || r.CPUNs <= 0 || r.StartCPUNs <= 0 || r.EndCPUNs <= 0 || r.Seconds <= 0 || r.Seconds > 60 {
				t.Errorf("%s: %+v", launcher, r)
			}
		}
		if loaded := site.Lines("loaded"); !slices.Equal(loaded[max(len(loaded)-1, 0):], []string{"app"}) {
			t.Errorf("%s: loaded into %q", launcher, loaded)
		}
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// The rounds that were finished are kept; what was under way counts for nothing.
func TestEndKeepsTheRuns(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	ctx, end := context.WithCancel(t.Context())
	said := 0
	runs, err := job(site, "mpirun -n 1 app finalize").Rounds(ctx, Options{Modes: Modes, Rounds: 3, Say: func(string) {
		if said++; said == 4 {
			end()
		}
	}})
	if !errors.Is(err, ErrInterrupted) || !strings.Contains(err.Error(), "round 2 of 3") || len(runs) != 4 {
		t.Errorf("%v, %+v", err, runs)
	}
	if s, ok := Summarize(runs); !ok || s.Rounds != 1 {
		t.Errorf("%v, %+v", ok, s)
	}
}

func TestMemoryIsSampledFromOutside(t *testing.T) {
	dir := t.TempDir()
	testwait.Until(t, "a sample of a process that announced itself", func() bool {
		s := startSampler(dir)
		if err := os.WriteFile(filepath.Join(dir, s.prefix+"1.json"), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * interval)
		return len(s.end()[1]) > 0
	})
}

func TestJobThatCannotPrintSaysSo(t *testing.T) {
	s, err := openStreams()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if why := s.full(); why != "" {
		t.Errorf("there is room, and it says %q", why)
	}
	device, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer device.Close()
	if why := (streams{out: device}).full(); !strings.HasSuffix(why, os.TempDir()+" (TMPDIR): no space left on device") {
		t.Errorf("a full disk: %q", why)
	}
}

func TestJobThatFailsIsOneLine(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	for command, says := range map[string]string{
		"mpirun app exit 3":  "the job failed with the transport's cache in round 1: exit status 3",
		"mpirun app kill 9":  "the job failed with the transport's cache in round 1: ",
		"mpirun app":         "ended without MPI_Finalize",
		"mpirun nompi":       "linked with no MPI library",
		"mpirun other":       "an MPI library that Pinwheel does not know",
		"mpirun absent/prog": "the job failed with the transport's cache",
	} {
		j := job(site, command)
		_, err := j.Rounds(t.Context(), Options{Modes: Modes, Rounds: 2, Say: func(string) {}})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line that says %q", command, err, says)
		}
	}
	meter := filepath.Join(filepath.Dir(site.Library), launch.Meter)
	if err := os.Rename(meter, meter+".away"); err != nil {
		t.Fatal(err)
	}
	defer os.Rename(meter+".away", meter)
	j := job(site, "mpirun app finalize")
	if _, err := j.Run(None, 0); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without the meter: %v", err)
	}
}
