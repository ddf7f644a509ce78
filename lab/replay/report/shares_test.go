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
