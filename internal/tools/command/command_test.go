package command

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
)

// tool are the declarations of a command that has one of everything.
type tool struct {
	Show showCmd `cmd:"" help:"Show."`
	Go   goCmd   `cmd:"" help:"Run."`
	Common
}

type showCmd struct {
	Mode  string        `default:"fast" enum:"fast,full" help:"How."`
	Like  string        `placeholder:"auto|none|SIZE" help:"What."`
	Pick  string        `help:"Which."`
	Out   string        `short:"o" placeholder:"FILE" help:"Where."`
	Count int           `help:"How many."`
	Share float64       `help:"How much."`
	Wait  time.Duration `type:"seconds" help:"How long."`
	Merge bool          `negatable:"" help:"Whether."`
	Files []string      `arg:"" help:"What."`
}

func (c *showCmd) Run(e *Env) error {
	switch c.Files[0] {
	case "fail":
		return errors.New("two\nlines\x1b[2J" + strings.Repeat("x", 5000) + "the cause")
	case "status":
		return WithStatus(errors.New("not found"), 127)
	case "usage":
		return AsUsage(errors.New("wrong"))
	}
	_, _ = io.WriteString(e.Stdout, "shown\n") // as the writes of a table
	return nil
}

type goCmd struct {
	Fast    bool     `help:"Fast."`
	Command []string `arg:"" passthrough:"partial" help:"What to run."`
}

func (c *goCmd) Run(*Env) error { return nil }

func toolSpec() Spec {
	return Spec{Name: "tool", Description: "Does things.", Declarations: func(string) any { return &tool{} },
		Choices: map[string][]string{"pick": {"one", "other"}}}
}

// toolEnv makes the test binary the tool.
const toolEnv = "PINWHEEL_TEST_TOOL"

func TestMain(m *testing.M) {
	if os.Getenv(toolEnv) != "" {
		Main(toolSpec())
	}
	os.Exit(m.Run())
}

func run(args ...string) (stdout, stderr string, status int) {
	var out, errs bytes.Buffer
	status = Run(toolSpec(), args, &out, &errs)
	return out.String(), errs.String(), status
}

func TestFaultsAreOneLineWithAStatus(t *testing.T) {
	if _, stderr, status := run("show", "x", ""); status != 2 || !strings.HasPrefix(stderr, "tool: <files> is empty") {
		t.Errorf("empty argument: status %d, %q", status, stderr)
	}
	if _, stderr, status := run("go", "x", ""); status != 0 {
		t.Errorf("empty argument of another program: status %d, %q", status, stderr)
	}
	for _, c := range []struct {
		line   string
		status int
		says   string
	}{
		{"", 2, "expected one of"},
		{"show", 2, `expected "<files> ..." (see tool show --help)`},
		{"show --nix x", 2, "unknown flag --nix (see tool show --help)"},
		{"show --out a --out b x", 2, "--out is given twice (see tool show --help)"},
		{"shw", 2, "unexpected argument shw"},
		{"--nix show", 2, "(see tool --help)"},
		{"help shw", 2, "unexpected argument shw"},
		{"version now", 2, "unexpected argument now (see tool version --help)"},
		{"show --mode slow x", 2, `--mode must be one of "fast","full" but got "slow"`},
		{"show --merge --merge x", 0, ""},
		{"show --count -1 --share -.5 x", 0, ""},
		{"show --wait 1.5 x", 0, ""},
		{"show --wait -1 x", 0, ""},
		{"show --wait soon x", 2, `--wait: "soon" is no time: write 30s, 10m, or a number of seconds`},
		{"show --wait 99999999999 x", 2, "--wait"},
		{"show --count -x x", 2, "--count"},
		{"show --count 99999999999999999999 x", 2, "--count"},
		{"show --out -1 x", 2, "--out"}, // no number is expected there
		{"show usage", 2, "wrong"},
		{"show status", 127, "not found"},
		{"show fail", 1, `two\nlines\x1b[2J`},
		{"show fail", 1, "xthe cause\n"},
		{"show --out= x", 2, "--out is empty"},
		{"show --merge x y=", 0, ""},
		{"go", 2, "<command>"},
		{"completion tcsh", 2, `must be one of "bash","zsh","fish"`},
	} {
		_, stderr, status := run(strings.Fields(c.line)...)
		lines := 1
		if c.says == "" {
			lines = 0
		}
		if status != c.status || strings.Count(stderr, "\n") != lines ||
			!strings.Contains(stderr, c.says) || len(stderr) > 2000 {
			t.Errorf("%q: status %d, %q, want %d and one line that says %q", c.line, status, stderr, c.status, c.says)
		}
	}
}

func TestHelpAndVersionAreCommandsAsWell(t *testing.T) {
	for line, same := range map[string]string{
		"help": "--help", "help show": "show --help", "help go": "go --help", "version": "--version",
	} {
		stdout, stderr, status := run(strings.Fields(line)...)
		want, _, _ := run(strings.Fields(same)...)
		if stdout != want || want == "" || stderr != "" || status != 0 {
			t.Errorf("%s: status %d, %q, %q, want %q", line, status, stdout, stderr, want)
		}
	}
}

func TestWhatCouldNotBePrintedIsAFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"show", "x"}, {"man"}, {"completion", "bash"}, {"--help"}, {"--version"}} {
		var errs strings.Builder
		if status := Run(toolSpec(), args, full, &errs); status != 1 ||
			errs.String() != "tool: standard output: no space left on device\n" {
			t.Errorf("%q: status %d, %q", args, status, errs.String())
		}
	}
}

func TestReaderThatEndsFirstEndsTheCommandBySIGPIPE(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	cmd := testwait.Command(t, "/proc/self/exe", "man")
	cmd.Env = append(os.Environ(), toolEnv+"=1")
	cmd.Stdout = w
	_ = cmd.Run() // the status says it all
	commandtest.EndedBy(t, cmd, unix.SIGPIPE)
}

// completions are what may follow a line, as every shell has it.
var completions = []struct {
	line string
	want []string
}{
	{"sh", []string{"show"}},
	{"", []string{"completion", "go", "show"}},
	{"show --mode f", []string{"fast", "full"}},
	{"show --mo", []string{"--mode"}},
	{"show --mode=fu", []string{"--mode=full"}},
	{"show --no", []string{"--no-merge"}},
	{"show --like a", []string{"auto"}},
	{"show --pick one,ot", []string{"one,other"}},
	{"show -o fil", []string{"file one", "file.two"}},
	{"show --count 3 --out x file.", []string{"file.two"}},
	{"completion z", []string{"zsh"}},
	{"go --fast tool-t", []string{"tool-to-find"}},
	{"go -- tool-t", []string{"tool-to-find"}},
	{"go -- tool-to-find --flag file.", []string{"file.two"}},
	{"nowhere --x", nil},
}

func TestWordsAreCompleted(t *testing.T) {
	spec := toolSpec()
	for _, c := range completions {
		words := strings.Split(c.line, " ")
		got := spec.complete(words)
		slices.Sort(got)
		if slices.Contains(got, files) || slices.Contains(c.want, "tool-to-find") {
			continue // the shell's part
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.line, got, c.want)
		}
	}
	for line, want := range map[string][]string{
		"show --mode = fu": {"full"}, "show --mode =": {"fast", "full"}, // as bash has it
		"show --nix=": nil, "show --out": {"--out"},
		"go": {"go"}, "go ": {commands, files}, "go x ": {files}, "show -- --m": {files}, "show --mode": {"--mode"},
	} {
		if got := spec.complete(strings.Split(line, " ")); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// completing makes a shell complete the line that is its last argument, and
// print one possible word a line.
var completing = map[string]string{
	"bash": `source <(tool completion bash) || exit
COMP_LINE="tool $1"; read -r -a COMP_WORDS <<< "$COMP_LINE"; [[ $1 == *" " || -z $1 ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_POINT=${#COMP_LINE}
compopt() { :; } # there is none outside of a completion
_tool; (( ${#COMPREPLY[@]} )) && printf '%s\n' "${COMPREPLY[@]}"`,
	"zsh": `compdef() { : }; compadd() { shift; print -rl -- "$@" }; compset() { PREFIX=${PREFIX#*=} }
_files() { print -rl -- $PREFIX*(N) }; _command_names() { local d; for d in $path; do print -rl -- $d/$PREFIX*(N:t); done }
source <(tool completion zsh) || exit
words=(tool ${(s: :)1}); [[ -z $1 || $1 == *" " ]] && words+=(""); CURRENT=${#words}; PREFIX=$words[CURRENT]
_tool | grep .`,
	"fish": `tool completion fish | source; complete -C "tool $argv[1]" | string replace -r '\t.*' '' | string unescape`,
}

func TestShellsComplete(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Symlink(exe, filepath.Join(bin, "tool")),
		os.WriteFile(filepath.Join(bin, "tool-to-find"), nil, 0o777),
		os.WriteFile(filepath.Join(dir, "file one"), nil, 0o666),
		os.WriteFile(filepath.Join(dir, "file.two"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	for shell, script := range completing {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("needs %s", shell)
			}
			for _, c := range completions {
				args := []string{"-c", script, "sh", c.line}
				switch shell {
				case "fish":
					args = []string{"--no-config", "-c", script, c.line}
				case "zsh":
					args = append([]string{"-f"}, args...)
				}
				cmd := testwait.Command(t, shell, args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), toolEnv+"=1", "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir)
				var errs bytes.Buffer
				cmd.Stderr = &errs
				out, _ := cmd.Output() // fish fails if there is nothing
				if shell != "fish" && strings.Contains(c.line, "=") {
					continue // which is a word of its own there
				}
				got := strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' })
				slices.Sort(got)
				if !slices.Equal(got, c.want) || errs.Len() > 0 {
					t.Errorf("%q: %q, want %q; %s", c.line, got, c.want, errs.String())
				}
			}
		})
	}
}
