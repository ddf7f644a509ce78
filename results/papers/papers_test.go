package papers

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func allRows(t *testing.T) []Row {
	t.Helper()
	all, err := Rows()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Each figure of ours that a row claims is in the raw data, and the page is what follows from them.
func TestEveryRowHasItsRawData(t *testing.T) {
	all := allRows(t)
	d := newData("..", all)
	figures := 0
	for i := range all {
		for k := range all[i].Ours {
			figures++
			if _, err := d.value(&all[i], &all[i].Ours[k]); err != nil {
				t.Error(err)
			}
		}
	}
	if figures < 100 {
		t.Errorf("%d figures of ours", figures)
	}
	page, err := Page("..")
	if err != nil {
		t.Fatal(err)
	}
	if committed, err := os.ReadFile(filepath.Join("..", File)); err != nil || string(committed) != page {
		t.Errorf("results/%s is not what follows from the raw data (%v): run make results-papers", File, err)
	}
}

func TestRowsAreWhole(t *testing.T) {
	targets := targets(t)
	seen, of := map[string]bool{}, map[string]int{}
	for _, r := range allRows(t) {
		if r.ID == "" || seen[r.ID] || !strings.HasPrefix(r.ID, r.Paper+"-") {
			t.Errorf("%q of %s: an ID begins with its paper, and there is one of it", r.ID, r.Paper)
		}
		seen[r.ID] = true
		of[r.Paper]++
		if r.Where == "" || r.What == "" || r.Why == "" || r.Has == nil && r.Says == "" || len(r.Ours) == 0 && r.Instead == "" {
			t.Errorf("%s lacks something: %+v", r.ID, r)
		}
		if r.Command == "" && len(r.Ours) > 0 {
			t.Errorf("%s has figures that no command makes", r.ID)
		}
		for _, target := range strings.Fields(strings.TrimPrefix(r.Command, "make ")) {
			if !slices.Contains(targets, target) {
				t.Errorf("%s: there is no target %q", r.ID, target)
			}
		}
		for _, cell := range []string{r.Where, r.What, r.Says, r.Instead, r.Why} {
			if strings.ContainsAny(cell, "|\n") {
				t.Errorf("%s: %q would break the table", r.ID, cell)
			}
		}
	}
	for _, p := range Papers {
		if of[p.Key] == 0 {
			t.Errorf("%s has no rows", p.Name)
		}
		delete(of, p.Key)
	}
	if len(of) > 0 {
		t.Errorf("rows of papers that are not known: %v", of)
	}
}

// targets are those of the Makefile and of what it includes.
func targets(t *testing.T) (names []string) {
	t.Helper()
	pending := []string{"Makefile"}
	for len(pending) > 0 {
		text := read(t, "..", "..", pending[0])
		pending = pending[1:]
		for _, m := range regexp.MustCompile(`(?m)^include (\S+)$`).FindAllStringSubmatch(text, -1) {
			pending = append(pending, m[1])
		}
		for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`).FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestFiguresOfRawData(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"a.jsonl": `{"policy":"base","v":8,"node":0}` + "\n" + `{"policy":"ours","v":6,"node":0}` + "\n" + `{"policy":"ours","v":4,"node":1}` + "\n" +
			`{"policy":"ours","v":5}` + "\n" + `{"policy":"ours","v":null,"node":2}` + "\n" + `{"policy":"text","v":"x"}` + "\n",
		"b.json": `{"list":[{"k":1,"v":3},{"k":2,"v":9}]}`,
		"c.txt":  "ours over none: +1.5 %\nours over none: +9 %\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours := func(node any) map[string]any { return map[string]any{"policy": "ours", "node": node} }
	base := map[string]any{"policy": "base"}
	whole := Figure{Label: "x", File: "a.jsonl", Where: ours(0.), Field: "v", Base: base, As: Saved}
	rows := []Row{{ID: "r", Ours: []Figure{whole}}, {ID: "s", Ours: []Figure{whole}}}
	d := newData(dir, rows)
	for name, c := range map[string]struct {
		f    Figure
		want string // "": an error
	}{
		"saved":                   {whole, "25.00 %"},
		"times":                   {Figure{File: "a.jsonl", Where: ours(1.), Field: "v", Base: map[string]any{"policy": "base", "node": 0.}, As: Times}, "2.00 x"},
		"slowdown":                {Figure{File: "a.jsonl", Where: ours(0.), Field: "v", Base: base, As: Slowdown}, "0.7500"},
		"absent":                  {Figure{File: "a.jsonl", Where: ours(nil), Field: "v", As: Count}, "5"},
		"sum":                     {Figure{File: "a.jsonl", Where: map[string]any{"policy": "base", "node": "*"}, Field: "v", Over: "sum", As: Count}, "8"},
		"sum with null":           {Figure{File: "a.jsonl", Where: ours("*"), Field: "v", Over: "sum", As: Count}, ""},
		"mean":                    {Figure{File: "a.jsonl", Where: ours("*"), Field: "v", Over: "mean", As: Count}, "5"},
		"list":                    {Figure{File: "b.json", List: "list", Where: map[string]any{"k": 2.}, Field: "v", As: Count}, "9"},
		"first match":             {Figure{File: "c.txt", Match: `over none: ([+-][\d.]+)`, As: Percent}, "1.50 %"},
		"mean of rows":            {Figure{Label: "x", MeanOf: []string{"r", "s"}, As: Saved}, "25.00 %"},
		"several that differ":     {Figure{File: "a.jsonl", Where: ours("*"), Field: "v", As: Count}, ""},
		"none":                    {Figure{File: "a.jsonl", Where: ours(7.), Field: "v", As: Count}, ""},
		"no number":               {Figure{File: "a.jsonl", Where: map[string]any{"policy": "text"}, Field: "v", As: Count}, ""},
		"no match":                {Figure{File: "c.txt", Match: `(\d+) apples`, As: Count}, ""},
		"no file":                 {Figure{File: "d.jsonl", Field: "v", As: Count}, ""},
		"no such row":             {Figure{Label: "x", MeanOf: []string{"t"}, As: Saved}, ""},
		"a base without relation": {Figure{File: "a.jsonl", Where: ours(0.), Field: "v", Base: base, As: Count}, ""},
	} {
		v, err := d.value(&rows[0], &c.f)
		if err != nil || c.want == "" {
			if err == nil || c.want != "" {
				t.Errorf("%s: %v, %v; want %q", name, v, err, c.want)
			}
			continue
		}
		if got, err := c.f.As.format(v); got != c.want || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}
