package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/lab/replay"
	"pinwheel/lab/replay/report"
)

func TestFrontierIsACurveBetweenPoints(t *testing.T) {
	figure := filepath.Join(t.TempDir(), "f.svg")
	stdout, stderr, status := nasreplay(t, "frontier", "--cost", ".1%,1%", "--json", "--svg", figure, ftB4)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %q", status, stderr)
	}
	by := map[string]report.FrontierPoint{}
	for line := range strings.Lines(stdout) {
		var p report.FrontierPoint
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		by[p.Name()] = p
	}
	if len(by) != 7 {
		t.Fatalf("points %v", by)
	}
	low, high, demand := by["pinwheel, 0.1 %"], by["pinwheel, 1 %"], by[replay.OnDemand]
	if !(low.SavedAvg < high.SavedAvg && high.SavedAvg < demand.SavedAvg && high.Slowdown < demand.Slowdown) {
		t.Errorf("%+v, %+v, %+v", low, high, demand)
	}
	if svg, err := os.ReadFile(figure); err != nil || !strings.Contains(string(svg), ">ft.B.4<") {
		t.Errorf("%v, %s", err, svg)
	}
}

func TestFrontierTableHasMeansOfSeveralTraces(t *testing.T) {
	stdout, stderr, status := nasreplay(t, "frontier", "--cost", "1%", ftB4, isC4)
	if status != 0 || stderr != "" || strings.Count(stdout, "pinwheel, 1 %") != 3 ||
		strings.Count(stdout, "helpers: ") != 1 {
		t.Errorf("status %d, %q, %s", status, stderr, stdout)
	}
}

func TestFrontierPageNeedsEveryTrace(t *testing.T) {
	dir := t.TempDir()
	_, stderr, status := nasreplay(t, "frontier", "--cost", "1%", "--out", dir, ftB4, filepath.Join(dir, "nix.pwt"))
	oneLine(t, stderr, "nix.pwt")
	if _, err := os.Stat(filepath.Join(dir, "frontier.md")); err == nil || status != 1 {
		t.Errorf("status %d, and a page of one trace of two: %v", status, err)
	}
	stdout, stderr, status := nasreplay(t, "frontier", "--cost", "1%", "--out", dir, ftB4)
	if _, err := os.Stat(filepath.Join(dir, "figures", "frontier.svg")); err != nil || status != 0 || stderr != "" ||
		stdout != filepath.Join(dir, "frontier.md")+" written\n" {
		t.Errorf("status %d, %v, %q, %q", status, err, stderr, stdout)
	}
}
