package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile/outfiletest"
	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
	"pinwheel/internal/tools/launch/launchtest"
)

// binary is the built command; TestMain builds it.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "pinwheel")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "pinwheel")
	// Tests that run at the same time share it.
	if err := os.Setenv("XDG_RUNTIME_DIR", dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Without symbols (-s, -w) it is linked in half the time.
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := launchtest.Main(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// pinwheel runs the command with arguments that have no spaces, two apostrophes
// for an empty one, and returns what it printed, and how it ended.
func pinwheel(t *testing.T, line string) (stdout, stderr string, state *os.ProcessState) {
	t.Helper()
	var out, errs bytes.Buffer
	args := strings.Fields(line)
	for i, a := range args {
		args[i] = strings.TrimPrefix(a, "''")
	}
	cmd := testwait.Command(t, binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState
}

// oneLine checks that stderr is a single line that says what it should.
func oneLine(t *testing.T, stderr, says string) {
	t.Helper()
	if strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "pinwheel: ") || !strings.Contains(stderr, says) {
		t.Errorf("stderr is %q, want one line that says %q", stderr, says)
	}
}

func TestWrongArgumentsAreOneLineAndStatus2(t *testing.T) {
	null := outfiletest.Device(t, outfiletest.Null)
	for _, c := range []struct{ line, says string }{
		{"", "expected one of"},
		{"walk", "unexpected argument walk"},
		{"run", "<command>"},
		{"run --", "there is no command to run"},
		{"run --nix -- app", "unknown flag --nix"},
		{"run --policy best -- app", `--policy: "best" is none of pinwheel|`},
		{"run --threshold 4Q -- app", "--threshold"},
		{"run --disable=maybe -- app", "neither y nor n"},
		{"record --record x -- app", "unknown flag --record"},
		{"record --", "there is no command to run"},
		{"record -o /tmp/x.pwt -- app", "put %r where the rank belongs"},
		{"record -o /tmp/%h/%r.pwt -- app", "name one directory for all ranks"},
		{"record -o '' -- app", "--out is empty"},
		{"record --merged= -- app", "--merged is empty"},
		{"record --merged " + null + " --force -- app", null + " is in the way of a trace, and no file"},
		{"record --merged /tmp --force -- app", "/tmp is in the way of a trace, and no file"},
		{"record -o /dev/null/x -- app", "/dev/null/x: not a directory"},
		{"record --merged /proc/nowhere/x.pwt -- app", "/proc/nowhere/x.pwt: "},
		{"run --report=/proc/nowhere/x.html -- app", "--report: /proc/nowhere/x.html: "},
		{"run --report= -- app", "--report is empty"},
		{"run --report=/tmp -- app", "--report: /tmp: is a directory"},
		{"run --report=/dev/null/x -- app", "--report: /dev/null/x: not a directory"},
		{"run --report --stats=x -- app", "--report makes use of PINWHEEL_STATS"},
		{"run --json -- app", "--json goes with --compare"},
		{"run --compare --rounds 0 -- app", "--rounds must be 1 or more"},
		{"run --rounds 3 -- app", "--rounds goes with --compare"},
		{"run --compare --report -- app", "--compare makes use of PINWHEEL_STATS"},
		{"run --compare --keep-caches -- app", "without --keep-caches"},
		{"run --compare --disable -- app", "which is disabled"},
		{"run --threshold -1 -- app", `--threshold: size "-1" is not a number`},
		{"run --helper-cpu -1 -- app", `--helper-cpu: "-1" is not auto|0..65536`},
		{"run --budget NaN -- app", `--budget: size "nan" is not a number`},
		{"run --window 99999999999999999999 -- app", "--window"},
		{"run --policy paper --policy lru -- app", "--policy is given twice"},
		{"run --library= -- app", "--library is empty"},
		{"report", "<report>"},
		{"report x ''", "<report> is empty"},
		{"completion sh", `one of "bash","zsh","fish"`},
		{"man page", "unexpected argument page"},
		{"info -f", "-f goes with -c"},
		{"doctor --yaml", "unknown flag --yaml"},
		{"top --once --interval 1s", "--interval makes no sense with --once"},
		{"top --interval 1ms", "--interval must be 100ms or more"},
		{"top --interval -1s", "--interval must be 100ms or more"},
		{"top --interval soon", "--interval"},
		{"top --job=", "--job is empty"},
		{"top 4711", "unexpected argument 4711"},
		{"metrics --listen 0.0.0.0:9400", "--listen: 0.0.0.0 is no loopback address"},
		{"metrics --listen :9400", "--listen: \":9400\" is neither unix:/PATH nor a loopback address"},
		{"metrics --listen unix:x", "--listen: \"unix:x\" names no socket by its absolute path"},
		{"metrics --listen 127.0.0.1:9 --textfile x.prom", "--textfile or --listen, not both"},
		{"metrics --listen 127.0.0.1:9 --once", "--once makes no sense with --listen"},
		{"metrics --textfile x.txt", "node_exporter reads files that end in .prom"},
		{"metrics --textfile x.prom --interval 1ms", "--interval must be 1s or more"},
		{"proxy tcp:127.0.0.1:0", "<target>"},
		{"proxy tcp:127.0.0.1:0 unix:/x", "must begin with vmmc:"},
		{"proxy udp:127.0.0.1:0 vmmc:unix:/x", "write tcp:HOST:PORT or unix:PATH"},
		{"proxy tcp:127.0.0.1:0 vmmc:tcp:127.0.0.1:99999", `"99999" is no port`},
		{"proxy tcp:127.0.0.1:0 vmmc:tcp:192.0.2.1:7", "give its address here with --from"},
		{"proxy vmmc:unix:/x tcp:127.0.0.1:9 --token-file x --key y", "either a token or a certificate"},
		{"metrics --interval 1m", "--interval goes with --textfile"},
	} {
		usageError(t, c.line, c.says)
	}
}

// usageError runs a command line that makes no sense: it gets status 2 and one line that says why.
func usageError(t *testing.T, line, says string) {
	t.Helper()
	stdout, stderr, state := pinwheel(t, line)
	if state.ExitCode() != 2 || stdout != "" {
		t.Errorf("%q: %v, stdout %q, want status 2", line, state, stdout)
	}
	oneLine(t, stderr, says)
}

func TestHelpOfEveryCommandHasExamples(t *testing.T) {
	for _, sub := range []string{"run", "record", "report", "top", "metrics", "proxy", "serve", "get", "put", "ls", "info", "doctor", "completion", "man"} {
		stdout, _, state := pinwheel(t, sub+" --help")
		if !state.Success() || !strings.Contains(stdout, "Example") || !strings.Contains(stdout, "pinwheel "+sub) {
			t.Errorf("%s --help: %v, %q", sub, state, stdout)
		}
	}
}

func TestHelpHasEverySettingAsAnOption(t *testing.T) {
	stdout, _, _ := pinwheel(t, "run --help")
	for _, option := range []string{"--policy=", "--threshold=", "--budget=", "--node-budget=", "--watch=", "--helper-cpu=", "--stats", "--disable"} {
		if !strings.Contains(stdout, option) {
			t.Errorf("run --help lacks %s", option)
		}
	}
}

func TestManualPageIsUpToDate(t *testing.T) {
	committed, err := os.ReadFile("pinwheel.1")
	if err != nil {
		t.Fatal(err)
	}
	stdout, _, _ := pinwheel(t, "man")
	if stdout != string(committed) {
		t.Error("pinwheel.1 is out of date: run go generate ./cmd/pinwheel")
	}
	for _, want := range []string{".TH PINWHEEL 1", ".B pinwheel record", "PINWHEEL_IDLE_POLICY", ".SH EXIT STATUS", `pinwheel run \-\- mpirun \-n 4 ./app`} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
}

func TestInfoListsWhatIsInForce(t *testing.T) {
	launchtest.New(t)
	t.Setenv("PINWHEEL_WINDOW", "4")
	t.Setenv("PINWHEEL_POLCIY", "lru")
	stdout, stderr, state := pinwheel(t, "info -c")
	if !state.Success() || !strings.Contains(stdout, "\nPINWHEEL_WINDOW=4\n") || strings.Contains(stdout, "#") {
		t.Errorf("info -c: %v, %q", state, stdout)
	}
	oneLine(t, stderr, "maybe: PINWHEEL_POLICY?")
	t.Setenv("PINWHEEL_HELPER_CPU", "two")
	t.Setenv("PINWHEEL_LOG", "Off")
	stdout, stderr, _ = pinwheel(t, "info -cf")
	if stderr != "" || !strings.Contains(stdout, "\nPINWHEEL_LOG=Off\n") {
		t.Errorf("with PINWHEEL_LOG=Off: %q", stderr)
	}
	if want := "# source:  default\n# ignored: \"two\" is not auto|0..65536\n#\nPINWHEEL_HELPER_CPU=auto\n"; !strings.Contains(stdout, want) {
		t.Errorf("info -cf lacks %q: %q", want, stdout)
	}
	if stdout, _, _ := pinwheel(t, "info -cf"); !strings.Contains(stdout, "# source:  environment\n#\nPINWHEEL_WINDOW=4\n") {
		t.Errorf("info -cf: %q", stdout)
	}
	if stdout, _, state := pinwheel(t, "info"); !state.Success() || !strings.Contains(stdout, "mlock") || !strings.HasPrefix(stdout, "Pinwheel ") {
		t.Errorf("info: %v, %q", state, stdout)
	}
}

func TestSignalsEndEveryCommand(t *testing.T) {
	launchtest.New(t)
	commandtest.NotIgnored(t, unix.SIGINT)
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM} {
		for _, line := range []string{"info", "info -cf", "doctor", "doctor --json", "man", "completion zsh", "--help", "metrics", "report one two"} {
			cmd := testwait.Command(t, binary, strings.Fields(line)...)
			cmd.Dir = t.TempDir()
			cmd.Stdout = commandtest.FullPipe(t) // so that it can't end by itself
			if strings.HasPrefix(line, "report") {
				if err := unix.Mkfifo(filepath.Join(cmd.Dir, "one"), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			commandtest.EndsBy(t, s, func() *exec.Cmd { return cmd })
			if left, _ := filepath.Glob(cmd.Dir + "/*"); len(left) > strings.Count(line, "one") {
				t.Errorf("%s: left %q", line, left)
			}
		}
	}
}

func TestWhatCouldNotBePrintedIsAFailure(t *testing.T) {
	launchtest.New(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	name := filepath.Join(t.TempDir(), "0.json")
	if err := os.WriteFile(name, []byte(`{"rank":0,"size":1,"pid":4,"command":"./x"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"info", "info -c", "doctor", "doctor --json", "man", "completion fish", "--version", "metrics", "report " + name} {
		cmd := testwait.Command(t, binary, strings.Fields(line)...)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		_ = cmd.Run() // the status says it all
		if cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: %v", line, cmd.ProcessState)
		}
		oneLine(t, errs.String(), "standard output: no space left on device")
	}
}
