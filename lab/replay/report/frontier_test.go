package report

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/lab/replay"
)

// frontier are two traces; nothing can be saved in the second.
func frontier() []FrontierPoint {
	share := func(v float64) *float64 { return &v }
	return []FrontierPoint{
		{Trace: "/opt/a b/c", Policy: replay.LeavePinned, Slowdown: 1, CapturedAvg: share(0)},
		{Trace: "/opt/a b/c", Policy: replay.OnDemand, Slowdown: 1.1, SavedAvg: .8, SavedPeak: .5, CapturedAvg: share(1)},
		{Trace: "/opt/a b/c", Policy: replay.Pinwheel, Cost: .001, Slowdown: 1.0004, SavedAvg: .4, CapturedAvg: share(.5)},
		{Trace: "/opt/a b/c", Policy: replay.Pinwheel, Cost: .02, Slowdown: 1.002, SavedAvg: .6, CapturedAvg: share(.75)},
		{Trace: "d", Policy: replay.LeavePinned, Slowdown: 1},
		{Trace: "d", Policy: replay.OnDemand, Slowdown: 1.2},
		{Trace: "d", Policy: replay.Pinwheel, Cost: .001, Slowdown: 1},
		{Trace: "d", Policy: replay.Pinwheel, Cost: .02, Slowdown: 1},
	}
}

func TestFrontierTableHasMeansOfWhereSomethingCanBeSaved(t *testing.T) {
	want := `| policy | memory saved | of what can be saved | peak saved | slowdown | greatest slowdown |
|---|---:|---:|---:|---:|---:|
| on-demand | 40.0 % | 100.0 % | 25.0 % | 1.1500 | 1.2000 |
| pinwheel, 0.1 % | 20.0 % | 50.0 % | 0.0 % | 1.0002 | 1.0004 |
`
	if got := frontierTable(frontier()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestFrontierFigureHasAPanelForEachTraceAndACurve(t *testing.T) {
	fig := FrontierFigure(frontier(), "conditions")
	if len(fig.Panels) != 2 || fig.Panels[0].Title != "a" || fig.Panels[1].Title != "d" || fig.Panels[0].XMax != 1 {
		t.Fatalf("panels %+v", fig.Panels)
	}
	var points []int
	for _, s := range fig.Panels[0].Series {
		points = append(points, len(s.X))
	}
	if len(points) != 3 || points[0] != 1 || points[1] != 1 || points[2] != 2 {
		t.Errorf("%d points of the series, want 1, 1 and 2", points)
	}
	if s := fig.Panels[1].Series; len(s) != 3 || len(s[2].X) != 0 {
		t.Errorf("what can't be saved is drawn: %+v", s)
	}
}

// A helper on the core of its rank makes the run longer by what it takes there.
func TestFrontierCountsHelpersWithoutACore(t *testing.T) {
	slowdown, captured := 1.01, .9
	rs := []replay.Result{
		{Policy: replay.LeavePinned, Rank: replay.AllRanks, RunNs: 1000, Slowdown: new(float64)},
		{Policy: replay.Paper, Rank: 1},
		{Policy: replay.Paper, Rank: replay.AllRanks, RunNs: 1000, Slowdown: &slowdown, CapturedAvg: &captured, HelperShare: 1,
			Counts: replay.Counts{HelperCPUNs: 40}},
	}
	for share, want := range map[float64]float64{1: 1.01, .1: 1.03} {
		rs[2].HelperShare = share
		if ps := FrontierPoints(rs); len(ps) != 2 || math.Abs(ps[1].Slowdown-want) > 1e-9 {
			t.Errorf("share %g: %+v, want a slowdown of %g", share, ps, want)
		}
	}
}

func TestFrontierIsWrittenWhollyOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	document := filepath.Join(dir, "README.md")
	f := Frontier{Points: frontier(), Conditions: "conditions", Helpers: []string{"none"}, Version: "v", Date: "today"}
	if err := os.WriteFile(document, []byte("no section\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(dir, document); err == nil {
		t.Error("a document without a section was accepted")
	}
	if _, err := os.Stat(filepath.Join(dir, "frontier.md")); err == nil {
		t.Error("the page was written all the same")
	}
	sectioned := "before\n" + FrontierMarkers.Begin + "old\n" + FrontierMarkers.End + "after\n"
	if err := os.WriteFile(document, []byte(sectioned), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(dir, document); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"README.md":            "Means of 2 traces, simulated:\nconditions.\nPinwheel v, today",
		"frontier.md":          "| a | pinwheel, 2 % | 1.00200 | 60.0 % | 0.0 % | 75.0 % |\n| d |",
		"frontier.jsonl":       `{"trace":"d","policy":"on-demand","slowdown":1.2,`,
		"figures/frontier.svg": ">pinwheel<",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "NaN") {
			t.Errorf("%s: %v, no %q in\n%s", name, err, want, text)
		}
	}
}

// The numbers in the project's README.md are those of results/frontier.jsonl.
func TestProjectReadmeHasTheNumbersOfTheFrontier(t *testing.T) {
	doc, err := frontierSection("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../results/frontier.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var ps []FrontierPoint
	for line := range strings.Lines(string(data)) {
		var p FrontierPoint
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		ps = append(ps, p)
	}
	if want := FrontierMarkers.Begin + frontierTable(ps); !strings.Contains(doc, want) {
		t.Errorf("run make results: README.md lacks\n%s", want)
	}
}
