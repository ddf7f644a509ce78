package explain

import (
	"maps"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/lab/replay"
	"pinwheel/mem"
	"pinwheel/predictor"
	"pinwheel/trace"
)

// traced explains a trace of results/.
func traced(t *testing.T, path string, o replay.Options) *Explanation {
	t.Helper()
	f, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := Trace(t.Context(), o, f)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func shipped(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, dir := range []string{"traces", "traces-again"} {
		paths, err := filepath.Glob("../../../results/" + dir + "/*.pwt")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, paths...)
	}
	if len(all) < 18 {
		t.Fatalf("only %d traces are there", len(all))
	}
	return all
}

func TestCausesAddUpToWhatWasMissedOnEveryTrace(t *testing.T) {
	for _, path := range shipped(t) {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(path, "is.C.4") { // of two runs, which are at the same time
				testwait.SkipUnderRace(t, "each replay has one thread")
			}
			x := traced(t, path, replay.Options{})
			want := 1 - *x.Result.CapturedAvg
			if got := x.Missed.Sum(); math.Abs(got-want) > 1e-9 {
				t.Errorf("causes add up to %.12f of the possible saving, %.12f were missed: %v", got, want, x.Missed)
			}
			for c, share := range x.Missed {
				if c := Cause(c); c != Stalls && (c == Late) != (share < 0) && math.Abs(share) > 1e-12 {
					t.Errorf("%v is %g", c, share)
				}
			}
			if s := x.Missed[Stalls]; math.Abs(s) > 0.02 {
				t.Errorf("%.4f of the possible saving is left to the stalls", s)
			}
			byRegion := x.Missed[Stalls]
			for i := range x.Regions {
				byRegion += x.Regions[i].MissedShare.Sum()
			}
			if math.Abs(byRegion-want) > 1e-9 {
				t.Errorf("regions add up to %.12f of the possible saving, %.12f were missed", byRegion, want)
			}
		})
	}
}

// TestCausesAddUpForSeveralWorkers has registrations that run at the same time.
func TestCausesAddUpForSeveralWorkers(t *testing.T) {
	x := traced(t, "../../../results/traces/is.C.4.pwt", replay.Options{Workers: 4})
	if got, want := x.Missed.Sum(), 1-*x.Result.CapturedAvg; math.Abs(got-want) > 1e-9 || got == 0 {
		t.Errorf("causes add up to %.12f, %.12f were missed", got, want)
	}
}

// TestCausesAddUpHoweverThePolicyIsBound has helpers that share a core, a share of one, a budget that copies what does
// not fit, ranks that share memory, and the recorded clock.
func TestCausesAddUpHoweverThePolicyIsBound(t *testing.T) {
	testwait.SkipUnderRace(t, "each replay has one thread")
	nodes := [][]int{{0, 1}, {2, 3}}
	for name, o := range map[string]replay.Options{
		"recorded":   {Timeline: replay.Recorded},
		"idle cores": {Nodes: nodes, Cores: &replay.IdleCores{PerNode: 1, Policy: "aggressive"}},
		"share":      {HelperShare: 0.02},
		"budget":     {BudgetBytes: 8 << 20, BudgetHelped: true},
		"window":     {SeriesFromNs: 1e9, SeriesToNs: 2e9},
	} {
		x := traced(t, "../../../results/traces/bt.C.4.pwt", o)
		if got, want := x.Missed.Sum(), 1-*x.Result.CapturedAvg; math.Abs(got-want) > 1e-9 || got == 0 {
			t.Errorf("%s: causes add up to %.12f, %.12f were missed", name, got, want)
		}
	}
}

func TestNothingToSaveIsNothingMissed(t *testing.T) {
	x := traced(t, "../../../results/traces/ft.B.4.pwt", replay.Options{ThresholdBytes: 1 << 40})
	if x.Missed != (Shares{}) || x.PossibleBytes != 0 || len(x.Regions) != 0 {
		t.Errorf("%+v", x)
	}
}

// TestCyclesTellTheWholeStory compares the timeline of every region with what was counted.
func TestCyclesTellTheWholeStory(t *testing.T) {
	x := traced(t, "../../../results/traces/bt.C.4.pwt", replay.Options{})
	late, registered, wasted, lateUses := 0, 0, 0, 0
	for _, r := range x.Regions {
		lateUses += r.Late
		cycles, err := x.Cycles(r.Rank, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cycles {
			if c.Use != i+1 || c.EndNs < c.NeedNs || i > 0 && c.NeedNs <= cycles[i-1].EndNs {
				t.Fatalf("region %d of rank %d: use %d after %+v is %+v", r.ID, r.Rank, i+1, cycles[max(i, 1)-1], c)
			}
			if i > 0 && (c.IdleNs > c.NeedNs-cycles[i-1].EndNs || (c.IdleNs > 0) != (c.Why != "")) {
				t.Errorf("region %d of rank %d: before use %+v, pinned idle since %d", r.ID, r.Rank, c, cycles[i-1].EndNs)
			}
			if c.Missed && i > 0 {
				late++
			}
			if c.RegisterNs > 0 && !c.Missed {
				registered++
			}
			wasted += c.Wasted
		}
	}
	// Uses that overlap are one, and what comes after the last use is no cycle's.
	near := func(n int, counted int64) bool { return n <= int(counted) && n >= int(counted)*9/10 }
	if r := &x.Result; !near(late, r.LateRegs) || registered == 0 || !near(registered+wasted, r.HelperRegs) {
		t.Errorf("%d late, %d registered in time, %d wasted; the replay counted %+v", late, registered, wasted, r.Counts)
	}
	if r := &x.Result; r.LateWaits == 0 || lateUses <= int(r.LateRegs) || !near(lateUses, r.LateUses()) {
		t.Errorf("%d late uses of regions; the replay counted %+v", lateUses, r.Counts)
	}
	for _, id := range []mem.RegionID{0, 1 << 40} {
		if _, err := x.Cycles(0, id); err == nil {
			t.Errorf("region %d was found", id)
		}
	}
	if _, err := x.Cycles(4, 1); err == nil {
		t.Error("rank 4 was found")
	}
}

// pages is a range of whole pages.
func pages(first, n mem.Addr) mem.Range {
	size := mem.Addr(mem.PageSize)
	return mem.Range{Start: first * size, End: (first + n) * size}
}

func TestAccountCountsEachPageOnce(t *testing.T) {
	a := account{}
	a.add(span{10, 20}, pages(0, 2), byBound, 0, 100)
	a.add(span{12, 15}, pages(0, 2), inUse, 0, 100)           // 2 pages needed for 3; the bound for 10
	a.add(span{15, 40}, pages(0, 2), layer(Margin), 0, 100)   // 20 too long
	a.add(span{30, 400}, pages(1, 2), layer(Unknown), 1, 100) // of these, 10 on one page; it goes first
	a.add(span{-50, 5}, pages(8, 1), layer(Wasted), 1, 100)   // 5 within the run
	a.add(span{50, 60}, mem.Range{}, layer(Wasted), 1, 100)   // nothing
	a.settle(2)
	page := float64(mem.PageSize)
	want := [2][Causes]float64{}
	want[0][Margin] = page * (20 + 10)
	want[0][Late] = -page * 2 * 2
	want[1][Unknown] = page * (10 + 2*60 + 10)
	want[1][Wasted] = page * 5
	if a.lost[0] != want[0] || a.lost[1] != want[1] {
		t.Errorf("lost %v, want %v", a.lost, want)
	}
	if a.bound != page*20 || a.pinned != page*(2*3+2*5)+want[0][Margin]+want[1][Unknown]+want[1][Wasted] {
		t.Errorf("pinned %g, bound %g", a.pinned/page, a.bound/page)
	}
}

// TestForecastsDecideTheCause goes through what can happen between the need at 1000 and that at 2000, where a release
// and registration take 100.
func TestForecastsDecideTheCause(t *testing.T) {
	const cycle = 100
	type ns map[Cause]int64
	forecast := func(madeNs, nextNs int64, gaps float64) replay.Forecast {
		p := predictor.Prediction{NextNs: nextNs, Confidence: gaps / (gaps + 1)}
		return replay.Forecast{MadeNs: madeNs, Predicted: true, Prediction: p}
	}
	gated := func(f replay.Forecast) replay.Forecast {
		f.Gated = true
		return f
	}
	known := func(f ...replay.Forecast) []replay.Forecast { return f }
	kept := func(goneNs int64) replay.Registration { return replay.Registration{GoneNs: goneNs} }
	anew := func(beganNs, goneNs int64) replay.Registration {
		return replay.Registration{BeganNs: beganNs, ReadyNs: beganNs + 50, GoneNs: goneNs}
	}
	const never = replay.Never
	for name, tc := range map[string]struct {
		forecasts []replay.Forecast
		reg       replay.Registration
		last      bool // no need follows
		want      ns
	}{
		"nothing known":             {nil, kept(never), false, ns{Unknown: 990}},
		"nothing known, last":       {nil, kept(5000), true, ns{NeverUsed: 3990}},
		"known later":               {known(forecast(1110, 1150, 3)), kept(never), false, ns{Unknown: 100, Early: 890}},
		"released":                  {known(forecast(1015, 1900, 9)), kept(1030), false, ns{Release: 15, Unknown: 5}},
		"not seen yet":              {known(forecast(500, 990, 9), forecast(1015, 1900, 9)), kept(1030), false, ns{Release: 20}},
		"does not pay":              {known(forecast(1010, 1100, 9)), kept(never), false, ns{Margin: 990}},
		"registered for a margin":   {known(forecast(1010, 1900, 9)), anew(1850, never), false, ns{Margin: 150}},
		"registered early":          {known(forecast(1010, 1900, 4)), anew(1850, never), false, ns{Early: 150}},
		"others were in the way":    {known(forecast(1010, 1900, 9)), anew(1800, never), false, ns{Queue: 50, Margin: 150}},
		"the deadline has moved":    {known(forecast(1010, 1500, 9), forecast(1600, 2300, 9)), anew(1450, never), false, ns{Queue: 550}},
		"the gate was still closed": {known(gated(forecast(1010, 1900, 9))), anew(1850, never), false, ns{Queue: 150}},
		"registered in vain":        {known(forecast(1010, 1500, 9)), anew(1450, 1700), false, ns{Wasted: 250}},
		"registered for nothing":    {known(forecast(1010, 1500, 9)), anew(1450, 1700), true, ns{NeverUsed: 250}},
		"before anything was known": {nil, anew(1950, never), false, ns{Queue: 50}},
	} {
		h := history{busy: []span{{1000, 1010}}, forecasts: tc.forecasts}
		if !tc.last {
			h.busy = append(h.busy, span{2000, 2010})
		}
		got := ns{}
		h.cut(&tc.reg, func(span) {}, func(s span, g gap) {
			if s.to == 1000 || s.from >= 2010 { // before and after what the test is about
				return
			}
			h.tellCauses(&tc.reg, s, g, cycle, func(s span, c Cause) {
				if s.to > s.from {
					got[c] += s.to - s.from
				}
			})
		})
		if !maps.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
