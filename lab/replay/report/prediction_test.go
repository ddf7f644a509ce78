package report

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"go.uber.org/atomic"

	"pinwheel/internal/testwait"
	"pinwheel/lab/replay/perturb"
	"pinwheel/predictor"
	"pinwheel/verbs"
)

func predictionOf(t *testing.T, parallel int, parts ...string) (page string, data []byte) {
	t.Helper()
	var planned int
	var done atomic.Int64
	p, data, err := Prediction(t.Context(), PredictionOptions{
		Traces: []string{"../../../results/traces/ft.B.4.pwt", "../../../results/traces/is.C.4.pwt"}, Parts: parts,
		Again: "../../../results/traces-again",
		Costs: []Costs{{Name: "test", Costs: verbs.DefaultCosts}}, Parallel: parallel,
		Begin: func(steps int) { planned = steps }, Step: func() { done.Inc() },
	})
	if err != nil {
		t.Fatal(err)
	}
	if planned == 0 || int(done.Load()) != planned {
		t.Errorf("%d of %d steps were done", done.Load(), planned)
	}
	return string(p), data
}

// tableRows counts the rows of the tables of a page, without the heads.
func tableRows(page string) (n int) {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "|") {
			n++
		}
		if strings.HasPrefix(line, "|---") {
			n -= 2
		}
	}
	return n
}

func TestPredictionHasTheRowsOfEveryPart(t *testing.T) {
	ideas := len(predictor.Ideas())
	for part, want := range map[string]struct{ rows, lines int }{
		partRuns:     {2 + 1, 2 * 2 * 3},
		partProfile:  {2 * 2, 2 * 2 * (3 + 2*4)},
		partCauses:   {2, 2},
		partErrors:   {2, 2 * 4},
		partAblation: {1 + ideas, (2 + 2) * (1 + ideas) * 3},
	} {
		t.Run(part, func(t *testing.T) {
			if part != partRuns {
				testwait.SkipUnderRace(t, "the runs of that part have as many threads")
			}
			page, data := predictionOf(t, 2, part)
			if got := tableRows(page); got != want.rows {
				t.Errorf("%d rows, want %d:\n%s", got, want.rows, page)
			}
			if got := bytes.Count(data, []byte("\n")); got != want.lines {
				t.Errorf("%d lines of JSON, want %d", got, want.lines)
			}
			for line := range bytes.Lines(data) {
				var x struct {
					Part     string
					Captured *float64 `json:"captured_avg"`
				}
				if err := json.Unmarshal(line, &x); err != nil || x.Part != part || x.Captured == nil {
					t.Fatalf("%v: %s", err, line)
				}
			}
			if part != partRuns {
				return
			}
			if again, _ := predictionOf(t, 1, part); again != page {
				t.Errorf("on one processor the page is\n%s", again)
			}
		})
	}
}

func TestPredictionShowsTheWorstOfWhatCannotBeForeseen(t *testing.T) {
	testwait.SkipUnderRace(t, "TestPredictionHasTheRowsOfEveryPart has as many threads")
	page, data := predictionOf(t, 2, partRobust)
	if got, want := tableRows(page), len(perturb.Kinds())+3; got != want {
		t.Fatalf("%d rows, want %d:\n%s", got, want, page)
	}
	type line struct {
		Condition, Policy string
		Slowdown          float64
	}
	var worst line
	for text := range bytes.Lines(data) {
		var x line
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatal(err)
		}
		if x.Condition == string(perturb.Halve) && x.Policy == "paper" && x.Slowdown > worst.Slowdown {
			worst = x
		}
	}
	b, _ := json.Marshal(worst.Slowdown)
	row := page[strings.Index(page, "| halved"):]
	if !strings.HasPrefix(strings.Split(row, "|")[3], " "+string(b[:5])) {
		t.Errorf("paper is slowed down by %v at most; the row is %s", worst.Slowdown, strings.Split(row, "\n")[0])
	}
}

func TestPredictionRefusesUnknownParts(t *testing.T) {
	_, _, err := Prediction(t.Context(), PredictionOptions{Traces: []string{"x"}, Costs: []Costs{{}}, Parts: []string{"nix"}})
	if err == nil || !strings.Contains(err.Error(), partAblation) {
		t.Errorf("error %v", err)
	}
	if slices.Contains(PredictionParts(), "nix") {
		t.Error("nix is a part")
	}
}
