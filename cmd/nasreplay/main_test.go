package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/verbs/verbstest"
)

// runEnv makes the test binary the command.
const runEnv = "PINWHEEL_TEST_NASREPLAY"

func TestMain(m *testing.M) {
	if os.Getenv(runEnv) != "" {
		main()
	}
	verbstest.Main(m, map[string]func() error{"unprivileged": unprivileged})
}

// singleThreaded is why tests of command lines don't run under the race detector. Only learn has threads of its own;
// what several replays share is tested by package replay.
const singleThreaded = "each replay has one thread"

// nasreplay runs the command and returns what it printed and its status.
func nasreplay(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	if len(args) == 0 || args[0] != "learn" {
		testwait.SkipUnderRace(t, singleThreaded)
	}
	var out, errs bytes.Buffer
	cmd := testwait.Command(t, "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), runEnv+"=1")
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

const (
	traces = "../../results/traces/"
	ftB4   = traces + "ft.B.4.pwt"
	isC4   = traces + "is.C.4.pwt"
)

// oneLine checks that stderr is a single complaint that says what it should.
func oneLine(t *testing.T, stderr, says string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "nasreplay: ") || !strings.Contains(stderr, says) {
		t.Errorf("stderr is %q, want one line that says %q", stderr, says)
	}
}

func TestWrongArgumentsAreOneLineAndStatus2(t *testing.T) {
	dir := t.TempDir()
	exists, link := filepath.Join(dir, "exists.pwt"), filepath.Join(dir, "link.pwt")
	if err := os.WriteFile(exists, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exists, link); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		says string
		args []string
	}{
		{"expected one of", nil},
		{"unexpected argument replay", []string{"replay"}},
		{"unknown flag --nix", []string{"info", "--nix", ftB4}},
		{"<trace>", []string{"info"}},
		{"16Q", []string{"info", "--threshold", "16Q", ftB4}},
		{"--top", []string{"info", "--top", "-1", ftB4}},
		{"--json", []string{"info", "--json", "--csv", ftB4}},
		{"--ranks", []string{"info", "--ranks", "x", ftB4}},
		{"--out", []string{"import", "x.csv"}},
		{"exists", []string{"merge", "--out", exists, ftB4}},
		{"exists", []string{"import", "--out", exists, "x.csv"}},
		{"is the input", []string{"import", "--force", "--out", exists, "x.csv", exists}},
		{"is the input", []string{"merge", "--force", "--out", link, exists}},
		{`unknown policy "papr"`, []string{"compare", "--policy", "papr", ftB4}},
		{"twice", []string{"compare", "--policy", "paper,paper", ftB4}},
		{"--timeline", []string{"compare", "--timeline", "wall", ftB4}},
		{"--alltoall", []string{"compare", "--alltoall", "ring", ftB4}},
		{"bandwidth", []string{"compare", "--bandwidth", "0", ftB4}},
		{"from 0.001 to 100000 Gb/s", []string{"compare", "--bandwidth", "NaN", ftB4}},
		{"bandwidth", []string{"compare", "--bandwidth", "1e-300", ftB4}},
		{"bandwidth", []string{"plot", "--bandwidth", "+Inf", ftB4}},
		{"--latency", []string{"compare", "--latency", "fast", ftB4}},
		{"latency must be from 0 to 1s", []string{"compare", "--latency=-1us", ftB4}},
		{"latency", []string{"compare", "--latency", "1000000h", ftB4}},
		{"overhead must be from 0 to 1s", []string{"compare", "--overhead", "2562047h", ftB4}},
		{"--eager", []string{"compare", "--eager", "0", ftB4}},
		{"--policy", []string{"compare", "--policy", "", ftB4}},
		{"--policy", []string{"plot", "--policy", "paper,,oracle", ftB4}},
		{"--ranks", []string{"compare", "--ranks", "", ftB4}},
		{"--per-node", []string{"compare", "--per-node", "0", ftB4}},
		{"--idle-cores needs --per-node", []string{"compare", "--idle-cores", "2", ftB4}},
		{"for --idle-cores", []string{"compare", "--per-node", "2", "--idle-policy", "off", ftB4}},
		{"must be one of", []string{"compare", "--per-node", "2", "--idle-cores", "1", "--idle-policy", "lazy", ftB4}},
		{"from 0 to", []string{"compare", "--per-node", "2", "--idle-cores", "5000", ftB4}},
		{"--to 0", []string{"scale", "--to", "0", ftB4}},
		{"--to 16", []string{"scale", "--to", "16,16", ftB4}},
		{"--layout", []string{"scale", "--layout", "2by8", ftB4}},
		{"not for --kind copies", []string{"scale", "--kind", "copies", "--layout", "2x8", ftB4}},
		{"wall clock", []string{"scale", "--timeline", "recorded", ftB4}},
		{"lazy", []string{"scale", "--policy", "lazy", ftB4}},
		{"--time-slice", []string{"compare", "--per-node", "2", "--idle-cores", "1", "--time-slice", "0s", ftB4}},
		{"--provider", []string{"compare", "--provider", "sim", ftB4}},
		{`unknown part "nix"`, []string{"prediction", "--part", "nix", ftB4}},
		{"without --json and --part", []string{"prediction", "--out", dir, "--json", ftB4}},
		{"--region is for one trace", []string{"explain", "--region", "1", ftB4, isC4}},
		{"no region 999", []string{"explain", "--region", "999", ftB4}},
		{"no rank 9", []string{"explain", "--region", "1", "--rank", "9", ftB4}},
		{"must not be negative", []string{"explain", "--top=-1", ftB4}},
		{"--skip-too-large", []string{"compare", "--skip-too-large", ftB4}},
		{"no rank 99", []string{"compare", "--ranks", "99", ftB4}},
		{"no rank 99", []string{"info", "--ranks", "1,99", ftB4}},
		{"no rank 99", []string{"plot", "--rank", "99", ftB4}},
		{"--threshold", []string{"compare", "--threshold", "0", ftB4}},
		{"may be", []string{"compare", "--costs", "r", ftB4}},
		{"--costs nix", []string{"compare", "--costs", "nix", ftB4}},
		{"oracle", []string{"compare", "--mode", "real", "--policy", "oracle", ftB4}},
		{"--scale", []string{"compare", "--mode", "real", "--scale", "0", ftB4}},
		{"scale", []string{"compare", "--mode", "real", "--scale", "NaN", ftB4}},
		{"scale", []string{"compare", "--mode", "real", "--scale", "1e300", ftB4}},
		{"pairs", []string{"compare", "--mode", "real", "--pairs=-1", ftB4}},
		{"--scale", []string{"compare", "--scale", "0.1", ftB4}},
		{"--provider", []string{"calibrate", "--provider", "infiniband"}},
		{"--rounds", []string{"calibrate", "--rounds", "0"}},
		{"--beside 1: ", []string{"calibrate", "--provider", "sim", "--beside", "1"}},
		{"--beside -1: ", []string{"calibrate", "--provider", "sim", "--between", "4K", "--beside", "-1"}},
		{"available", []string{"calibrate", "--provider", "sim", "--max-size", "1000T"}},
		{"--kind", []string{"plot", "--kind", "pie", ftB4}},
		{"--kind memory", []string{"plot", "--kind", "errors", "--from", "1s", ftB4}},
		{"ft.B.4: the window begins after the end of the run: 1h23m20s of ", []string{"plot", "--policy", "leave-pinned", "--from", "5000s", ftB4}},
		{"one file", []string{"plot", "--out", "x.svg", ftB4, isC4}},
		{"--top must not be negative", []string{"info", "--top", "-1", ftB4}},
		{"--top: expected a valid 64 bit int", []string{"info", "--top", "99999999999999999999", ftB4}},
		{"--top is given twice", []string{"info", "--top", "1", "--top", "2", ftB4}},
		{"rank 1 is named twice", []string{"info", "--ranks", "1,0", "--ranks", "1", ftB4}},
		{"no rank -1", []string{"compare", "--ranks", "-1", ftB4}},
		{`size "-1"`, []string{"compare", "--budget", "-1", ftB4}},
		{"--workers must be at least 1", []string{"compare", "--workers", "0", ftB4}},
		{"idle cores of their own", []string{"compare", "--workers", "2", "--helper-share", "5%", ftB4}},
		{`"101%" is not a share`, []string{"compare", "--helper-share", "101%", ftB4}},
		{`"0%" leaves policy pinwheel nothing`, []string{"compare", "--helper-share", "0%", ftB4}},
		{`"0%" leaves policy pinwheel nothing`, []string{"compare", "--cost", "0%", ftB4}},
		{`"1%" is given twice`, []string{"compare", "--cost", ".01,1%", ftB4}},
		{"lacks a name", []string{"compare", "--cost", "1%,", ftB4}},
		{"without --json and --svg", []string{"frontier", "--out", dir, "--json", ftB4}},
		{"--document is for --out", []string{"frontier", "--document", exists, ftB4}},
		{"no section of the frontier", []string{"frontier", "--out", dir, "--document", exists, ftB4}},
		{"both go to standard output", []string{"frontier", "--json", "--svg", "-", ftB4}},
		{"leaves policy pinwheel nothing", []string{"frontier", "--cost", "0,1%", ftB4}},
		{"for virtual mode", []string{"compare", "--mode", "real", "--cost", ".1%,1%", ftB4}},
		{`"1%,2%" is not a share`, []string{"explain", "--cost", "1%,2%", ftB4}},
		{`size "NaN"`, []string{"calibrate", "--max-size", "NaN"}},
		{"--out is empty", []string{"calibrate", "--out", ""}},
		{"--out is empty", []string{"merge", "--out", "", ftB4}},
		{"<trace> is empty", []string{"info", ftB4, ""}},
		{"--costs is empty", []string{"compare", "--costs", "", ftB4}},
		{"--rounds from 1 to", []string{"calibrate", "--rounds", "-1"}},
		{"--rounds from 1 to", []string{"calibrate", "--rounds", "99999999999"}},
		{"network latency must be", []string{"compare", "--latency", "-1us", ftB4}},
		{"--scale and --pairs", []string{"compare", "--mode", "real", "--scale", "0", ftB4}},
		{"from 1 to 1000", []string{"compare", "--mode", "real", "--pairs", "-1", ftB4}},
		{"bandwidth must be", []string{"compare", "--bandwidth", "-1", ftB4}},
		{"no rank -1", []string{"plot", "--rank", "-1", ftB4}},
		{"--rank must not be negative", []string{"results", "--rank", "-1", "--out", dir, ftB4}},
		{"--readme: " + dir + "/none has no section of results", []string{"results", "--readme", dir + "/none", "--out", dir, ftB4}},
		{"--readme: " + exists + " has no section of results", []string{"results", "--readme", exists, "--out", dir, ftB4}},
		{"there are no traces in " + dir + "/traces", []string{"results", "--out", dir}},
		{"give --program NAME", []string{"import", "--out", "-", "x.csv"}},
		{`one of "bash","zsh","fish"`, []string{"completion", "tcsh"}},
		{"no stretch of time", []string{"plot", "--from", "2s", "--to", "1s", ftB4}},
	} {
		stdout, stderr, status := nasreplay(t, tc.args...)
		if status != 2 || stdout != "" {
			t.Errorf("%q: status %d, stdout %q, want status 2", tc.args, status, stdout)
		}
		oneLine(t, stderr, tc.says)
	}
}

func TestHelpOfEverySubcommandHasExamples(t *testing.T) {
	for _, sub := range []string{"import", "merge", "info", "compare", "plot", "calibrate", "results", "completion", "man"} {
		stdout, _, status := nasreplay(t, sub, "--help")
		if status != 0 || !strings.Contains(stdout, "nasreplay "+sub+" ") || !strings.Contains(stdout, "Example") {
			t.Errorf("%s --help: status %d, %q", sub, status, stdout)
		}
		if strings.Contains(stdout, "--out=") && !strings.Contains(stdout, "-o, --out=") {
			t.Errorf("%s has --out without -o", sub)
		}
	}
}

func TestManualPageIsUpToDate(t *testing.T) {
	committed, err := os.ReadFile("nasreplay.1")
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, _ := nasreplay(t, "man")
	if stdout != string(committed) {
		t.Error("nasreplay.1 is out of date: run go generate ./cmd/nasreplay")
	}
	for _, want := range []string{".TH NASREPLAY 1", ".B nasreplay compare\n[options] trace ...\n", "SOURCE_DATE_EPOCH", `nasreplay results \-\-out results`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestPlotWritesTheSameFileAgain(t *testing.T) {
	draw := func() []byte {
		dir := t.TempDir()
		for _, out := range []string{dir, filepath.Join(dir, "one.svg")} {
			if _, stderr, status := nasreplay(t, "plot", "--out", out, "--policy", "leave-pinned,oracle", ftB4); status != 0 {
				t.Fatalf("status %d, %q", status, stderr)
			}
		}
		one, err := os.ReadFile(filepath.Join(dir, "one.svg"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "memory-ft.B.4.svg"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(one, b) {
			t.Error("--out DIR and --out FILE.svg differ")
		}
		return b
	}
	if a, b := draw(), draw(); !bytes.Equal(a, b) || !bytes.Contains(a, []byte("oracle")) {
		t.Error("two drawings differ, or lack a policy")
	}
}
