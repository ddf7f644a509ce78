package settings

import (
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pinwheel/mem"
)

func TestDefaultsAreThoseOfTheDesign(t *testing.T) {
	want := Settings{
		ThresholdBytes: 16 << 10, Policy: "pinwheel", IdlePolicy: "auto", HelperCPU: Auto, Cost: 0.005, Window: 2,
		BudgetBytes: Auto, NodeBudgetBytes: mem.Unlimited, Watch: "auto", Watchd: "/run/pinwheel/watch.sock", Provider: "auto", Stats: "n", Log: "warn",
		Profile: "n", ProfileBytes: 256 << 20,
	}
	if got := Default(); got != want {
		t.Errorf("Default() = %+v, want %+v", got, want)
	}
}

func TestLoadReadsEveryVariable(t *testing.T) {
	got, warnings := Load([]string{
		"PINWHEEL_DISABLE=1", "PINWHEEL_THRESHOLD=4K", "PINWHEEL_POLICY=Paper",
		"PINWHEEL_IDLE_POLICY=off", "PINWHEEL_HELPER_CPU=3",
		"PINWHEEL_COST=12.5%",
		"PINWHEEL_WINDOW=0", "PINWHEEL_BUDGET=16M", "PINWHEEL_NODE_BUDGET=auto", "PINWHEEL_WATCH=uffd", "PINWHEEL_WATCHD=/w", "PINWHEEL_WATCH_WAIT=y",
		"PINWHEEL_PROVIDER=sim", "PINWHEEL_RDMA_DEVICE=mlx5_0:1",
		"PINWHEEL_RECORD=%h.%r=1.pwt", "PINWHEEL_STATS=y", "PINWHEEL_PROFILE=/p", "PINWHEEL_PROFILE_FORCE=y",
		"PINWHEEL_PROFILE_LIMIT=8M", "PINWHEEL_LOG=debug", "HOME=/", "PINWHEEL=1", "PINWHEEL_LOG_=",
	})
	want := Settings{true, 4 << 10, "paper", "off", 3, 0.125, 0, 16 << 20, Auto, "uffd", "/w", true, "sim", "mlx5_0:1", "%h.%r=1.pwt",
		"y", "/p", true, 8 << 20, "debug"}
	if got != want || len(warnings) > 0 {
		t.Errorf("Load() = %+v, %q, want %+v", got, warnings, want)
	}
	if n := reflect.TypeFor[Settings]().NumField(); n != len(table) {
		t.Errorf("%d fields for %d variables", n, len(table))
	}
}

func TestLoadWarnsAndKeepsDefaults(t *testing.T) {
	for _, c := range []struct{ entry, warning string }{
		{"PINWHEEL_TRESHOLD=1M", "PINWHEEL_TRESHOLD is not known and ignored; maybe: PINWHEEL_THRESHOLD?"},
		{"PINWHEEL_POLCIY=lru", "PINWHEEL_POLCIY is not known and ignored; maybe: PINWHEEL_POLICY?"},
		{"PINWHEEL_budget=1M", "PINWHEEL_budget is not known and ignored; maybe: PINWHEEL_BUDGET?"},
		{"PINWHEEL_FROBNICATE=1", "PINWHEEL_FROBNICATE is not known and ignored"},
		{"PINWHEEL_DISABLE=maybe", `PINWHEEL_DISABLE: "maybe" is neither y nor n; using n`},
		{"PINWHEEL_WINDOW=9", `PINWHEEL_WINDOW: "9" is not 0..8; using 2`},
		{"PINWHEEL_WINDOW=auto", `PINWHEEL_WINDOW: "auto" is not 0..8; using 2`},
		{"PINWHEEL_HELPER_CPU=-1", `PINWHEEL_HELPER_CPU: "-1" is not auto|0..65536; using auto`},
		{"PINWHEEL_THRESHOLD=auto", `PINWHEEL_THRESHOLD: size "auto" is not a number with K, M, G or T, or inf; using 16K`},
		{"PINWHEEL_POLICY=best",
			`PINWHEEL_POLICY: "best" is none of pinwheel|paper|paper-strict|leave-pinned|on-demand|lru; using pinwheel`},
	} {
		got, warnings := Load([]string{c.entry})
		if got != Default() || !slices.Equal(warnings, []string{c.warning}) {
			t.Errorf("%s: warnings %q, want %q; settings %+v", c.entry, warnings, c.warning, got)
		}
	}
}

// A variable that has another name now is read under its former one, and a line says so.
func TestFormerNamesAreRead(t *testing.T) {
	const line = "PINWHEEL_HELPER_SHARE is now PINWHEEL_COST, the most of a rank's time that Pinwheel may cost, and is read as that"
	for _, c := range []struct {
		environ  []string
		cost     float64
		warnings []string
	}{
		{[]string{"PINWHEEL_COST=0.02"}, 0.02, nil},
		{[]string{"PINWHEEL_COST=.2%"}, 0.002, nil},
		{[]string{"PINWHEEL_COST=5"}, 0.05, nil},
		{[]string{"PINWHEEL_HELPER_SHARE=5%"}, 0.05, []string{line}},
		{[]string{"PINWHEEL_COST=1%", "PINWHEEL_HELPER_SHARE=5%"}, 0.01, []string{line}},
		{[]string{"PINWHEEL_HELPER_SHARE="}, 0.005, nil},
		{[]string{"PINWHEEL_HELPER_SHARE=half"}, 0.005,
			[]string{`PINWHEEL_COST: "half" is not a share from 0% to 100%; using .5%`, line}},
	} {
		got, warnings := Load(c.environ)
		if diff := got.Cost - c.cost; diff > 1e-12 || diff < -1e-12 || !slices.Equal(warnings, c.warnings) {
			t.Errorf("%q: a cost of %g, %q; want %g, %q", c.environ, got.Cost, warnings, c.cost, c.warnings)
		}
	}
}

func TestFullListIsShellScriptOfWhatIsInForce(t *testing.T) {
	environ := []string{"PINWHEEL_RECORD=it's %r.pwt", "PINWHEEL_WINDOW=7", "PINWHEEL_POLICY=nonsense"}
	var list strings.Builder
	if err := WriteList(&list, environ, true); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(list.String(), "# syntax:  0..8\n# default: 2\n# source:  environment\n#\nPINWHEEL_WINDOW=7\n") {
		t.Errorf("no documented PINWHEEL_WINDOW in\n%s", list.String())
	}
	for line := range strings.Lines(list.String()) {
		if len(line) > 79 && strings.Contains(line, " ") && !strings.HasPrefix(line, "# syntax") {
			t.Errorf("line longer than a terminal: %q", line)
		}
	}
	cmd := exec.Command("sh", "-ac", list.String()+"\nenv")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	got, _ := Load(strings.Split(string(out), "\n"))
	want, _ := Load(environ)
	if got != want {
		t.Errorf("read back %+v, want %+v", got, want)
	}
}

func TestShortListHasOneLinePerVariable(t *testing.T) {
	var list strings.Builder
	if err := WriteList(&list, nil, false); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(list.String(), "\n"); n != len(table) || strings.Contains(list.String(), "#") {
		t.Errorf("%d lines for %d variables:\n%s", n, len(table), list.String())
	}
}

func TestSettingsPageIsUpToDate(t *testing.T) {
	doc, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := UpdatePage(string(doc))
	if err != nil {
		t.Fatal(err)
	}
	if want != string(doc) {
		t.Error("docs/settings.md is out of date: run go generate ./internal/settings")
	}
}

func TestUpdatePageReplacesOnlyItsSection(t *testing.T) {
	doc := "# A\n" + pageMarkers.Begin + "REPLACED\n" + pageMarkers.End + "rest\n"
	got, err := UpdatePage(doc)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(got, "# A\n"+pageMarkers.Begin+"\n### `PINWHEEL_") ||
		!strings.HasSuffix(got, "`warn`\n\n"+pageMarkers.End+"rest\n") || strings.Contains(got, "REPLACED") {
		t.Errorf("got %q", got)
	}
	if again, _ := UpdatePage(got); again != got {
		t.Error("a second update changes the document")
	}
	if _, err := UpdatePage("# A\n"); err == nil {
		t.Error("a document without markers was accepted")
	}
}

// Whatever is in the environment, the settings are usable and each variable
// of ours is either taken or reported.
func FuzzLoad(f *testing.F) {
	for _, v := range table {
		f.Add(v.name, v.value)
		f.Add(v.name+"S", "1")
	}
	f.Add("BUDGET", "9223372036854775807T")
	f.Add("WINDOW", "-0")
	f.Fuzz(func(t *testing.T, name, value string) {
		s, warnings := Load([]string{Prefix + name + "=" + value})
		if s.ThresholdBytes < 0 || s.Window < 0 || s.Window > 8 || s.BudgetBytes < Auto ||
			s.NodeBudgetBytes < Auto || s.HelperCPU < Auto {
			t.Errorf("%q: %+v", value, s)
		}
		if len(warnings) > 1 {
			t.Errorf("%d warnings about one variable: %q", len(warnings), warnings)
		}
		for _, w := range warnings {
			if s != Default() || strings.Contains(w, "\n") {
				t.Errorf("warning %q, settings %+v", w, s)
			}
		}
	})
}
