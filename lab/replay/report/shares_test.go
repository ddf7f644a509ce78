package report

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/verbs"
)

func TestSharesGoBetweenTheMarkersOnly(t *testing.T) {
	document := filepath.Join(t.TempDir(), "shares.md")
	costs := Costs{Name: "test", Costs: verbs.DefaultCosts}
	write := func(text string) error {
		if err := os.WriteFile(document, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return WriteShares(context.Background(), document, []string{"../../../results/traces/lu.B.4.pwt"}, costs, func() {})
	}
	if err := write("no markers\n"); err == nil {
		t.Error("a document without markers was accepted")
	}
	if err := write("before\n" + ShareMarkers.Begin + "old\n" + ShareMarkers.End + "after\n"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	got := string(text)
	if !strings.HasPrefix(got, "before\n"+ShareMarkers.Begin) || !strings.HasSuffix(got, ShareMarkers.End+"after\n") || strings.Contains(got, "old") {
		t.Errorf("the document is now\n%s", got)
	}
	if n := strings.Count(got, "\n| lu.B.4 |"); n != 3 || !strings.Contains(got, "| 0.1 % | 0.5 % | 1 % | 2 % | idle core |") {
		t.Errorf("%d rows of the trace, want one in each of 3 tables:\n%s", n, got)
	}
}

// The summary in the project's README.md is that of results/helper-share.md.
func TestProjectReadmeHasTheSummaryOfTheShares(t *testing.T) {
	want, err := shareSummary("../../../results/helper-share.md")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ShareSummaryMarkers.Between(string(doc)); err != nil || got != want {
		t.Errorf("run make helper-share: README.md has\n%s\nresults/helper-share.md gives\n%s (%v)", got, want, err)
	}
}

func TestSummaryOfTheShares(t *testing.T) {
	document := filepath.Join(t.TempDir(), "shares.md")
	tables := func(row string) string {
		const head = "\n\n| trace | 0.1 % | 0.5 % | 1 % | 2 % | idle core |\n|---|---:|---:|---:|---:|---:|\n"
		return ShareMarkers.Begin + capturedTitle + head + "| a | .1 | 0.20 | .3 | .4 | 0.50 |\n| b | .1 | 0.40 | .3 | .4 | 1.00 |\n\n" +
			costTitle + head + "| a | 1 % | 2.00 % | 3 % | 4 % | 5.00 % |\n" + row + "\n" + ShareMarkers.End
	}
	for row, want := range map[string]string{
		"| b | 1 % | 3.00 % | 3 % | 4 % | 6.00 % |\n": "| 2 NAS runs, replayed | of the possible saving | cost, of a rank's time |\n|---|---:|---:|\n" +
			"| a core is idle | 0.75 (0.50 to 1.00) | 5.50 % (5.00 to 6.00) |\n| every core has a rank | 0.30 (0.20 to 0.40) | 2.50 % (2.00 to 3.00) |\n",
		"| b | 1 % |\n":               "",
		"| b | x | y | z | u | v |\n": "",
	} {
		if err := os.WriteFile(document, []byte(tables(row)), 0o666); err != nil {
			t.Fatal(err)
		}
		if got, err := shareSummary(document); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", row, got, err, want)
		}
	}
	if err := os.WriteFile(document, []byte(ShareMarkers.Begin+ShareMarkers.End), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := shareSummary(document); err == nil {
		t.Error("a document without tables was accepted")
	}
}
