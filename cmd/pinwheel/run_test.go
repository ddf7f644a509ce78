package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/commandtest"
	"pinwheel/internal/tools/launch/launchtest"
)

func TestOnlyTheProgramIsPreloadedUnderEveryLauncher(t *testing.T) {
	for _, launcher := range []string{"mpirun -n 2", "mpiexec.hydra -n 2", "srun -n 2", ""} {
		site := launchtest.New(t)
		_, stderr, state := pinwheel(t, "run --library "+site.Library+" --policy=paper --stats -- "+launcher+" app exit 7")
		if state.ExitCode() != 7 || strings.Count(stderr, "\n") > 1 { // hydra with an Open MPI program is worth a line
			t.Errorf("%s: %v, %q", launcher, state, stderr)
		}
		if got := site.Lines("loaded"); !slices.Equal(got, []string{"app"}) {
			t.Errorf("%s: loaded into %q, want app only", launcher, got)
		}
		environ := site.Lines("environ")
		for _, want := range []string{"PINWHEEL_POLICY=paper", "PINWHEEL_STATS=y", "FI_MR_CACHE_MAX_COUNT=0", "UCX_RCACHE_ENABLE=n"} {
			if !slices.Contains(environ, want) {
				t.Errorf("%s: the program lacks %s: %q", launcher, want, environ)
			}
		}
		if launcher != "" && !slices.Contains(site.Lines("launcher"), "OMPI_MCA_mpi_leave_pinned=0") {
			t.Errorf("%s: the launcher lacks OMPI_MCA_mpi_leave_pinned=0", launcher)
		}
	}
}

func TestWhatCantBePreloadedRunsPlain(t *testing.T) {
	for line, want := range map[string]struct {
		status int
		says   string
	}{
		"mpirun -n 2 static":    {3, "statically linked"},
		"nompi":                 {4, "no MPI library"},
		"script":                {6, "a shell"},
		"aprun -n 2 app exit 5": {5, "aprun ... pinwheel run -- program"},
	} {
		site := launchtest.New(t)
		_, stderr, state := pinwheel(t, "run --library "+site.Library+" -- "+line)
		if state.ExitCode() != want.status || len(site.Lines("loaded")) > 0 {
			t.Errorf("%s: %v, loaded into %q", line, state, site.Lines("loaded"))
		}
		oneLine(t, stderr, want.says)
		if !strings.HasSuffix(stderr, "; running without Pinwheel\n") {
			t.Errorf("%s: %q does not say that it runs", line, stderr)
		}
	}
}

func TestRankOfAnUnknownLauncherMayStartPinwheelItself(t *testing.T) {
	site := launchtest.New(t)
	_, stderr, state := pinwheel(t, "run --library "+site.Library+" --disable -- app exit 9")
	if state.ExitCode() != 9 || stderr != "" || !slices.Contains(site.Lines("environ"), "PINWHEEL_DISABLE=y") {
		t.Errorf("%v, %q, %q", state, stderr, site.Lines("environ"))
	}
	if slices.Contains(site.Lines("environ"), "FI_MR_CACHE_MAX_COUNT=0") {
		t.Error("the transport's cache is off although Pinwheel is disabled")
	}
}

func TestCommandThatIsNotThereIsStatus127(t *testing.T) {
	launchtest.New(t)
	dir := t.TempDir()
	for _, sub := range []string{"run", "run --report=" + dir + "/report", "record -o " + dir + "/new/"} {
		_, stderr, state := pinwheel(t, sub+" -- nowhere-to-be-found")
		if state.ExitCode() != 127 {
			t.Errorf("%s: %v", sub, state)
		}
		oneLine(t, stderr, "nowhere-to-be-found")
	}
	if left, _ := filepath.Glob(dir + "/*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestProgramsDeathBySignalIsOurs(t *testing.T) {
	for _, sub := range []string{"run", "record"} {
		for _, s := range []syscall.Signal{unix.SIGSEGV, unix.SIGABRT, unix.SIGTERM, unix.SIGKILL} {
			site := launchtest.New(t)
			line := sub + " --library " + site.Library
			if sub == "record" {
				line += " -o " + t.TempDir() + "/"
			}
			_, stderr, state := pinwheel(t, line+" -- mpirun -n 1 app kill "+itoa(s))
			status := state.Sys().(syscall.WaitStatus)
			if !status.Signaled() || status.Signal() != s || strings.Contains(stderr, "goroutine") {
				t.Errorf("%s, program killed by %v: %v, %q", sub, s, state, stderr)
			}
		}
	}
}

func TestSignalsReachTheProgram(t *testing.T) {
	testwait.Bound(t)
	for _, sub := range []string{"run", "record"} {
		for _, s := range []syscall.Signal{unix.SIGUSR1, unix.SIGTERM} {
			site := launchtest.New(t)
			args := []string{sub, "--library", site.Library}
			if sub == "record" {
				args = append(args, "-o", t.TempDir()+"/")
			}
			cmd := testwait.Command(t, binary, append(args, "--", "mpirun", "-n", "1", "app", "wait")...)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
				t.Fatalf("program says %q, %v", line, err)
			}
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the status says it all
			if got := cmd.ProcessState.ExitCode(); got != 40+int(s) {
				t.Errorf("%s: %v ended the program with %v, want status %d", sub, s, cmd.ProcessState, 40+int(s))
			}
		}
	}
}

func TestNobodyWaitsForTheWriterOfAFIFO(t *testing.T) {
	site := launchtest.New(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := errors.Join(unix.Mkfifo(fifo, 0o777), os.Chmod(fifo, 0o777)); err != nil {
		t.Fatal(err)
	}
	_, stderr, state := pinwheel(t, "run --library "+fifo+" -- app exit 5")
	if state.ExitCode() != 5 {
		t.Errorf("as the library: %v", state)
	}
	oneLine(t, stderr, "no regular file; running without Pinwheel")
	_, stderr, state = pinwheel(t, "run --library "+site.Library+" -- "+fifo)
	if state.ExitCode() != 126 {
		t.Errorf("as the program: %v", state)
	}
	oneLine(t, stderr, "permission denied")
}

func TestCompareRunsTheJobInThreeWays(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	stdout, stderr, state := pinwheel(t, "run --compare --rounds 1 --library "+site.Library+" -- mpirun -n 1 app finalize")
	if !state.Success() || strings.Count(stderr, "pinwheel: round 1 of 1, ") != 3 || !strings.Contains(stdout, "No memory was pinned") {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
	stdout, _, state = pinwheel(t, "run --compare --json --rounds 1 --library "+site.Library+" -- mpirun -n 1 app finalize")
	var result struct {
		Command []string
		Runs    []struct{ Mode string }
		Verdict []string
	}
	if err := json.Unmarshal([]byte(stdout), &result); err != nil || !state.Success() || len(result.Runs) != 3 || len(result.Verdict) == 0 || len(result.Command) != 5 {
		t.Errorf("%v, %v, %q", state, err, stdout)
	}
	_, stderr, state = pinwheel(t, "run --compare --library "+site.Library+" -- mpirun -n 1 app exit 3")
	if state.ExitCode() != 1 {
		t.Errorf("%v", state)
	}
	oneLine(t, stderr, "the job failed with the transport's cache in round 1: exit status 3")
}

func TestSignalKeepsTheRoundsOfAComparison(t *testing.T) {
	commandtest.NotIgnored(t, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	for _, c := range []struct {
		signal syscall.Signal
		runs   int
		option string
		says   string // on standard output
	}{
		{unix.SIGINT, 4, "", "@ 1 round, "}, {unix.SIGTERM, 6, "", "@ 2 rounds, "}, {unix.SIGHUP, 1, "", ""},
		{unix.SIGINT, 3, "--json", `"stopped":"interrupted in round 2 of 6, with no cache"`},
	} {
		site := launchtest.New(t)
		t.Chdir(t.TempDir())
		temporary := t.TempDir()
		t.Setenv("TMPDIR", temporary)
		cmd := testwait.Command(t, binary, strings.Fields(fmt.Sprintf(
			"run --compare %s --library %s -- mpirun -n 1 app sometimes %d wait", c.option, site.Library, c.runs))...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		testwait.Until(t, "a run that waits", func() bool {
			_, err := os.Stat(site.Path("then"))
			return err == nil
		})
		if err := cmd.Process.Signal(c.signal); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // the status says it all
		commandtest.EndedBy(t, cmd, c.signal)
		if !strings.Contains(stdout.String(), c.says) || (c.says == "") != (stdout.Len() == 0) {
			t.Errorf("%v after %d runs: %q", c.signal, c.runs, stdout.String())
		}
		if !strings.Contains(stderr.String(), fmt.Sprintf("; %d of 6 rounds were finished\n", c.runs/3)) {
			t.Errorf("%v after %d runs: %q", c.signal, c.runs, stderr.String())
		}
		for _, dir := range []string{".", temporary} {
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%v: left %v, %v", c.signal, left, err)
			}
		}
	}
}

func TestFailureKeepsTheRoundsBefore(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	stdout, stderr, state := pinwheel(t, "run --compare --library "+site.Library+" -- mpirun -n 1 app sometimes 3 exit 3")
	if state.ExitCode() != 1 || !strings.Contains(stdout, "@ 1 round, ") ||
		!strings.Contains(stderr, "the job failed with no cache in round 2: exit status 3") {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
}
