package report

import (
	"encoding/json"
	"strings"
	"testing"

	"pinwheel/schedule"
)

func write(t *testing.T, ranks ...Rank) string {
	t.Helper()
	var b strings.Builder
	var j Job
	for _, r := range ranks {
		j.Add(r)
	}
	if err := j.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestAggregateAddsAndWeighs(t *testing.T) {
	got := write(t,
		Rank{Rank: 1, Size: 2, Host: "b", Command: "./a", Policy: "pinwheel", PeakPinnedBytes: 1 << 20, Uses: 10, Hits: 9,
			First: 1, Accuracy: Accuracy{Predictions: 1, Err5: 1},
			Sites: []Site{{Name: "main+0x10", Op: "send", Uses: 5, Bytes: 100}}},
		Rank{Rank: 0, Size: 2, Host: "a", Command: "./a", Policy: "pinwheel", PeakPinnedBytes: 3 << 20, Uses: 20, Hits: 18,
			Late: 1, Waited: 1, Accuracy: Accuracy{Predictions: 3, Err5: 0.5},
			Sites: []Site{{Name: "main+0x10", Op: "send", Uses: 5, Bytes: 100},
				{Name: "main+0x20", Op: "recv", Uses: 1, Bytes: 1000}}},
	)
	lines := strings.Split(got, "\n")
	var rows []string
	for i, l := range lines {
		if strings.Contains(l, "ahead  released") {
			for _, row := range lines[i+1 : i+4] {
				rows = append(rows, strings.Join(strings.Fields(row), " "))
			}
		}
	}
	want := []string{
		"0 a 3.0 MiB 0 B 20 18 0 2 1 0 0 0 0.0 % 50.0 % 0.0 0.0",
		"1 b 1.0 MiB 0 B 10 9 1 0 0 0 0 0 0.0 % 100.0 % 0.0 0.0",
		"* * 4.0 MiB 0 B 30 27 1 2 1 0 0 0 0.0 % 62.5 % 0.0 0.0",
	}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
	if recv, send := strings.Index(got, "main+0x20"), strings.Index(got, "main+0x10"); recv < 0 || send < recv {
		t.Errorf("sites are not in the order of their bytes:\n%s", got)
	}
	if !strings.Contains(got, "send  10    200 B") {
		t.Errorf("a site of two ranks is not added up:\n%s", got)
	}
}

// The first rank may have registered nothing, and ranks on other nodes may have another kernel.
func TestTotalNamesHowChangesWereNoticed(t *testing.T) {
	for _, c := range []struct{ ranks, want string }{
		{"-", ""}, {"bpf bpf", "bpf"}, {"- bpf", "bpf"}, {"uffd bpf uffd -", "bpf, uffd"},
	} {
		var ranks []Rank
		var j Job
		for i, watch := range strings.Fields(c.ranks) {
			ranks = append(ranks, Rank{Rank: i, Uses: 1, Mapping: strings.Trim(watch, "-")})
			j.Add(ranks[i])
		}
		if got := j.Total().Mapping; got != c.want {
			t.Errorf("%s: %q, want %q", c.ranks, got, c.want)
		}
		if text := write(t, ranks...); strings.Contains(text, "@ Mappings "+c.want+"\n") != (c.want != "") {
			t.Errorf("%s: no %q in\n%s", c.ranks, c.want, text)
		}
	}
}

func TestRanksThatWereStartedByOthersAreToldApart(t *testing.T) {
	got := write(t,
		Rank{World: "13", Rank: 0, Size: 1, Host: "c", Uses: 1},
		Rank{World: "2", Rank: 0, Size: 2, Host: "b", Command: "./started", Uses: 1},
		Rank{Rank: 1, Size: 2, Host: "a", Uses: 1},
		Rank{Rank: 0, Size: 2, Host: "a", Command: "./launched", Uses: 1},
	)
	var names []string
	for l := range strings.Lines(got) {
		if f := strings.Fields(l); len(f) > 15 && f[3] == "B" {
			names = append(names, f[0])
		}
	}
	if !strings.Contains(got, "./launched") || !strings.Contains(got, "2 of 2 ranks, and 2 that these started") ||
		strings.Join(names, " ") != "0 1 2-0 13-0 *" {
		t.Errorf("%q\n%s", names, got)
	}
}

func TestReportSaysWhyNothingWasRegistered(t *testing.T) {
	for _, c := range []struct {
		rank Rank
		want string
	}{
		{Rank{Size: 1}, "the transport used no verbs"},
		{Rank{Size: 1, VerbsUsed: true}, "the transport registered no memory"},
		{Rank{Size: 1, VerbsUsed: true, Plain: 7, Policy: "on-demand"},
			"with policy on-demand the transport's 7 registrations go past it"},
		{Rank{Size: 1, VerbsUsed: true, Plain: 7},
			"registrations left alone, because they were small or the transport's own: 7"},
	} {
		if got := write(t, c.rank); !strings.Contains(got, c.want) || strings.Contains(got, "ahead  released") {
			t.Errorf("no %q in\n%s", c.want, got)
		}
	}
	if got := write(t); got != "" {
		t.Errorf("a report of no ranks: %q", got)
	}
}

func TestOverheadOfThePathIsWeighedBySamples(t *testing.T) {
	got := write(t,
		Rank{Rank: 0, Size: 2, VerbsUsed: true, Uses: 1, PathNs: 40, PathSamples: 300},
		Rank{Rank: 1, Size: 2, VerbsUsed: true, Uses: 1, PathNs: 60, PathSamples: 100})
	if !strings.Contains(got, "45 ns beside registration, the mean of 400 hits") {
		t.Errorf("the mean of the ranks is not in\n%s", got)
	}
	if got := write(t, Rank{Size: 1, Uses: 1}); strings.Contains(got, "Overhead") {
		t.Errorf("an overhead that was not measured:\n%s", got)
	}
}

func TestStartsOfRegistrationsAreTold(t *testing.T) {
	var early, late schedule.Histogram
	for text, h := range map[string]*schedule.Histogram{`{"counts":[[100,99],[106,1]],"max_ns":300}`: &early,
		`{"counts":[[130,10]],"max_ns":40000}`: &late} {
		if err := json.Unmarshal([]byte(text), h); err != nil {
			t.Fatal(err)
		}
	}
	got := write(t, Rank{Uses: 1, Starts: early}, Rank{Rank: 1, Uses: 1, Starts: late})
	if want := "latest 110 -0.4 20.5 40.0"; !strings.Contains(strings.Join(strings.Fields(got), " "), want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	if got := write(t, Rank{Uses: 1}); strings.Contains(got, "planned registrations") {
		t.Errorf("starts of a job without planned registrations:\n%s", got)
	}
}
