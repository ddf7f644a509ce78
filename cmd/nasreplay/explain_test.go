package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExplainPrintsWhatAddsUp(t *testing.T) {
	out, errs, status := nasreplay(t, "explain", "--json", ftB4)
	var x struct {
		CapturedAvg float64 `json:"captured_avg"`
		Missed      float64
		Causes      map[string]float64
		Regions     []struct {
			Rank, Region, Uses int
			Causes             map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(out), &x); err != nil || status != 0 {
		t.Fatalf("status %d: %v\n%s", status, err, errs)
	}
	var sum float64
	for _, v := range x.Causes {
		sum += v
	}
	if math.Abs(sum-x.Missed) > 1e-9 || math.Abs(sum-(1-x.CapturedAvg)) > 1e-9 || len(x.Causes) < 9 || len(x.Regions) < 36 {
		t.Errorf("%d causes add up to %g; %g are missed, captured %g; %d regions", len(x.Causes), sum, x.Missed, x.CapturedAvg, len(x.Regions))
	}
}

func TestExplainShowsOneRegion(t *testing.T) {
	figure := filepath.Join(t.TempDir(), "region.svg")
	out, errs, status := nasreplay(t, "explain", "--region", "4", "--rank", "1", "--figure", figure, ftB4)
	if status != 0 || strings.Count(out, "\n") != 3+22 || !strings.Contains(out, "margin") || !strings.Contains(out, "first gap kept") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	svg, err := os.ReadFile(figure)
	if err != nil || !strings.Contains(string(svg), "Region 4 of rank 1 of ft.B.4") || !strings.Contains(string(svg), ">deadline<") {
		t.Errorf("%v\n%s", err, svg)
	}
}

func TestExplainDrawsAllTraces(t *testing.T) {
	out, errs, status := nasreplay(t, "explain", "--figure", "-", "--csv", ftB4, isC4)
	svg, csv, _ := strings.Cut(out, "</svg>\n")
	if status != 0 || !strings.Contains(svg, ">first gap kept<") || !strings.Contains(svg, ">is.C.4<") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if lines := strings.Split(csv, "\n"); len(lines) != 4 || !strings.HasPrefix(lines[0], "trace,captured_avg,missed,first_gap_kept,") || !strings.HasPrefix(lines[2], "is.C.4,") {
		t.Errorf("CSV is\n%s", csv)
	}
}
