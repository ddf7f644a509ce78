package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"pinwheel/comm/files/report"
	"pinwheel/internal/testwait"
)

func TestTheSimulationShowsWhatThePaperFound(t *testing.T) {
	testwait.Bound(t)
	claims := report.Claims()
	if len(claims) < 13 {
		t.Errorf("only %d claims", len(claims))
	}
	for _, c := range claims {
		if !c.Holds() {
			t.Errorf("%s: %s, must be %s", c.What, c.Got(), c.Want())
		}
	}
}

// What lies in results/files is what this build writes.
func TestResultsAreThoseOfThisBuild(t *testing.T) {
	testwait.Bound(t)
	dir, steps := t.TempDir(), 0
	if err := report.Write(dir, func() { steps++ }); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if steps != report.Figures() || len(written) != steps+1 {
		t.Errorf("%d steps, %d files, want %d figures and a page", steps, len(written), report.Figures())
	}
	committed := filepath.Join("..", "..", "..", "results", "files")
	for _, f := range written {
		got, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join(committed, f.Name()))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("results/files/%s is of another build (%v): run make results-files", f.Name(), err)
		}
	}
	pictures, err := filepath.Glob(filepath.Join(committed, "*.svg"))
	if err != nil || len(pictures) != report.Figures() {
		t.Errorf("%d pictures in results/files, %v", len(pictures), err)
	}
}
