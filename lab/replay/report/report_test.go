package report

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pinwheel/internal/machine"
	"pinwheel/lab/replay"
	"pinwheel/verbs"
)

const tracesDir = "../../../results/traces"

// write makes a report of two short traces and returns its files.
func write(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	document := filepath.Join(dir, "README.md")
	dir = filepath.Join(dir, "results")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(document, []byte("before\n"+Markers.Begin+"old\n"+Markers.End+"after\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	real := `{"trace":"ft.B.4","rank":0,"policy":"leave-pinned","provider":"uring","mode":"real","avg_pinned_bytes":1000,"needs":5,"slowdown":1,"scale":1,"pairs":5,"slowdown_min":1,"slowdown_max":1}
{"trace":"ft.B.4","rank":0,"policy":"pinwheel","provider":"uring","mode":"real","avg_pinned_bytes":250,"needs":5,"slowdown":1.0012,"scale":1,"pairs":5,"slowdown_min":0.999,"slowdown_max":1.003}
{"trace":"ft.B.4","rank":0,"policy":"pinwheel","profile":true,"provider":"uring","mode":"real","avg_pinned_bytes":200,"needs":5,"slowdown":1.0011,"scale":1,"pairs":5,"slowdown_min":0.999,"slowdown_max":1.003}
`
	if err := os.WriteFile(filepath.Join(dir, RealFile), []byte(real), 0o666); err != nil {
		t.Fatal(err)
	}
	costs := verbs.Costs{Register: verbs.Cost{PerPageNs: 250, FixedNs: 16_000}, Deregister: verbs.Cost{PerPageNs: 20, FixedNs: 5_000}}
	steps := 0
	o := Options{OutDir: dir, Document: document, Machine: machine.Machine{Processor: "cpu", Processors: 1, Kernel: "kernel"}, Version: "v", Date: "2026-11-20",
		Traces: []string{filepath.Join(tracesDir, "ft.B.4.pwt"), filepath.Join(tracesDir, "is.C.4.pwt")},
		Costs:  []Costs{{Name: "rdma", Costs: costs, Note: "a note"}}, Step: func() { steps++ }}
	if err := Write(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if steps != o.Steps() {
		t.Errorf("%d steps were reported, %d announced", steps, o.Steps())
	}
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestReportIsTheSameTwiceAndCompleteInItself(t *testing.T) {
	files := write(t)
	for name, content := range write(t) {
		if files[name] != content {
			t.Errorf("%s differs the second time", name)
		}
	}
	readme := files["README.md"]
	for _, want := range []string{"ft.B.4", "is.C.4", "FT.B.4 (section 6.2)", "31.0 %", "a note", "| 1.0012 | 0.9990 | 1.0030 | 75.0 % |", "pinwheel, with a profile | 5 | 1.0011 |", "kernel", "2026-11-20"} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md lacks %q", want)
		}
	}
	goals := regexp.MustCompile(`\| ft\.B\.4 \| rdma \| \*\*(0\.8\d+)\*\* \| (0\.9\d+) \| \d\.\d+ % \| 1\.00\d+ \|`)
	if !goals.MatchString(readme) {
		t.Errorf("README.md does not mark what ft.B.4 misses by what it learns in its first half:\n%s", readme)
	}
	for _, policy := range replay.Policies() {
		if strings.Count(files["policies.md"], "| "+policy+" |") != 2 {
			t.Errorf("policies.md lacks a row of %s for each trace", policy)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(readme, -1) {
		others := []string{"prediction.md", "frontier.md", "papers.md", "headlines.md"} // which other commands write
		if !slices.Contains(others, link[1]) && files[link[1]] == "" {
			t.Errorf("README.md refers to %s, which was not written", link[1])
		}
	}
	if n := strings.Count(files["virtual.jsonl"], "\n"); n != 2*2*len(replay.Policies()) {
		t.Errorf("virtual.jsonl has %d lines", n)
	}
	if doc := files["../README.md"]; !strings.HasPrefix(doc, "before\n"+Markers.Begin+"| trace |") || !strings.HasSuffix(doc, Markers.End+"after\n") || !strings.Contains(doc, "| is.C.4 |") {
		t.Errorf("document became %q", doc)
	}
	for name, content := range files {
		if strings.Contains(content, "NaN") || strings.Contains(content, "<no value>") || strings.HasSuffix(name, ".partial") {
			t.Errorf("%s: not a number, a missing value or a partial file", name)
		}
	}
}

func TestEveryRankIsOnExactlyOneNode(t *testing.T) {
	for _, g := range groupings(16) {
		seen := map[int]int{}
		for _, node := range g.nodes {
			if len(node) != tasksPerNode {
				t.Errorf("%s: node of %d ranks", g.name, len(node))
			}
			for _, r := range node {
				seen[r]++
			}
		}
		if len(seen) != 16 {
			t.Errorf("%s: %v", g.name, g.nodes)
		}
	}
}

// The numbers in the project's README.md are those of results/virtual.jsonl.
func TestProjectReadmeHasTheNumbersOfTheResults(t *testing.T) {
	doc, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	section, err := Markers.Between(string(doc))
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../../../results/virtual.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var rs []replay.Result
	for line := range strings.Lines(string(data)) {
		var r replay.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	if want := shortTable(rs, rs[0].Provider); !strings.HasPrefix(section, want) {
		t.Errorf("run make results: README.md has\n%s\nresults/virtual.jsonl gives\n%s", section, want)
	}
}
