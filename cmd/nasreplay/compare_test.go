package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// The metric names are a promise to whoever reads the output.
func TestCompareJSONHasTheNamesOfTheDesignAndTheSameBytesTwice(t *testing.T) {
	args := []string{"compare", "--json", "--policy", "leave-pinned,paper,oracle", ftB4, isC4}
	first, stderr, status := nasreplay(t, args...)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %q", status, stderr)
	}
	if again, _, _ := nasreplay(t, args...); again != first {
		t.Error("two runs differ")
	}
	lines := strings.Split(strings.TrimSuffix(first, "\n"), "\n")
	if want := 2 * 3 * (4 + 1); len(lines) != want {
		t.Fatalf("%d lines, want %d: two traces, three policies, four ranks and their sum", len(lines), want)
	}
	names := strings.Fields(`trace rank policy provider mode peak_pinned_bytes avg_pinned_bytes first_regs late_regs helper_regs helper_deregs
		wasted_regs stall_ns run_ns slowdown err_0_5 err_5 captured_avg captured_peak helper_cpu_ns`)
	for _, line := range lines {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if _, ok := got[name]; !ok {
				t.Fatalf("%q is missing in %s", name, line)
			}
		}
	}
	csv, _, _ := nasreplay(t, "compare", "--csv", "--ranks", "1,3", "--policy", "paper", ftB4)
	rows := strings.Split(strings.TrimSuffix(csv, "\n"), "\n")
	if len(rows) != 3 || !strings.HasPrefix(rows[0], "trace,rank,") || strings.Count(rows[0], ",") != strings.Count(rows[1], ",") || !strings.HasPrefix(rows[2], "ft.B.4,3,") {
		t.Errorf("CSV: %q", rows)
	}
}

func TestTableShowsWhatIsSavedAndOnlyWhatWasAskedFor(t *testing.T) {
	stdout, _, status := nasreplay(t, "compare", "--policy", "oracle", ftB4)
	if status != 0 || strings.Contains(stdout, "leave-pinned") || !strings.Contains(stdout, "-33.3 %") {
		t.Errorf("status %d, %s", status, stdout)
	}
}

func TestRealModeReportsScaleAndPairs(t *testing.T) {
	stdout, stderr, status := nasreplay(t, "compare", "--mode", "real", "--provider", "sim", "--scale", "0.01", "--pairs", "2", "--json",
		"--policy", "leave-pinned,pinwheel", traces+"lu.B.4.pwt")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %q", status, stderr)
	}
	for line := range strings.Lines(stdout) {
		var got struct {
			Mode, Provider string
			Scale          float64
			Pairs, Needs   int
		}
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got.Mode != "real" || got.Provider != "sim" || got.Scale != 0.01 || got.Pairs != 2 || got.Needs == 0 {
			t.Errorf("%+v", got)
		}
	}
	if n := strings.Count(stdout, "\n"); n != 2 {
		t.Errorf("%d results, want one for each policy", n)
	}
}

// Only what depends on the cost is replayed for each, and each row says for which.
func TestSeveralCostsAreACurveOfPolicyPinwheel(t *testing.T) {
	args := []string{"compare", "--cost", ".1%,1%", "--policy", "paper,pinwheel"}
	csv, stderr, status := nasreplay(t, append(args, "--csv", "--ranks", "0", ftB4)...)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %q", status, stderr)
	}
	var got []string
	var column map[string]int
	for line := range strings.Lines(csv) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		if column == nil {
			column = map[string]int{}
			for i, name := range cells {
				column[name] = i
			}
			continue
		}
		got = append(got, cells[column["policy"]]+" "+cells[column["cost"]])
	}
	if want := []string{"paper 0", "pinwheel 0.001", "pinwheel 0.01"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	table, _, _ := nasreplay(t, append(args, ftB4)...)
	for _, want := range []string{"  paper  ", "  pinwheel 0.1%  ", "  pinwheel 1%  "} {
		if strings.Count(table, want) != 1 {
			t.Errorf("no row %q in\n%s", want, table)
		}
	}
	one, _, _ := nasreplay(t, "compare", "--cost", "1%", "--policy", "paper,pinwheel", ftB4)
	if strings.Contains(one, "1%") {
		t.Errorf("one cost changes the table:\n%s", one)
	}
	both, _, _ := nasreplay(t, "compare", "--cost", ".1%,1%", "--helper-share", ".5%", "--policy", "pinwheel", "--json", "--ranks", "0", ftB4)
	if !strings.Contains(both, `"helper_share":0.001,"cost":0.001,`) || !strings.Contains(both, `"helper_share":0.01,"cost":0.01,`) {
		t.Errorf("on a full node, costs are not those of uses on demand:\n%s", both)
	}
}
