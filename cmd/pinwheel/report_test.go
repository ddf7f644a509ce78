package main

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile/outfiletest"
	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/launch/launchtest"
)

func TestOneReportOfAllRanksAfterTheJob(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	line := "run --library " + site.Library + " --report -- mpirun -n 2 app report"
	stdout, stderr, state := pinwheel(t, line)
	if state.ExitCode() != 8 || stdout != "" || strings.Count(stderr, "@ Command  app report\n") != 1 || !strings.Contains(stderr, "2 of 2 ranks") {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
	if _, stderr, state := pinwheel(t, strings.Replace(line, "--report", "--report=all.txt", 1)); state.ExitCode() != 8 || stderr != "" {
		t.Errorf("into a file: %v, %q", state, stderr)
	}
	if _, stderr, state := pinwheel(t, strings.Replace(line, "--report", "--report=all.html", 1)); state.ExitCode() != 8 || stderr != "" {
		t.Errorf("into a page: %v, %q", state, stderr)
	}
	if text, err := os.ReadFile("all.html"); err != nil || !strings.Contains(string(text), "2 of 2 ranks") || os.Remove("all.html") != nil {
		t.Errorf("page: %.200q, %v", text, err)
	}
	if text, err := os.ReadFile("all.txt"); err != nil || !strings.Contains(string(text), "2 of 2 ranks") {
		t.Errorf("file: %q, %v", text, err)
	}
	if left, _ := filepath.Glob("*"); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	_, stderr, state = pinwheel(t, strings.Replace(line, "app report", "app exit 5", 1))
	if state.ExitCode() != 5 {
		t.Errorf("without reports: %v", state)
	}
	oneLine(t, stderr, "no rank has written a report")
	_, stderr, state = pinwheel(t, strings.Replace(line, "--report", "--report --stats", 1))
	if state.ExitCode() != 2 {
		t.Errorf("with --stats: %v", state)
	}
	oneLine(t, stderr, "--report makes use of PINWHEEL_STATS")
}

// srun -n 2 pinwheel run --report -- app: the last process to end reports on all ranks of its step.
func TestProcessesOfOneStepMakeOneReport(t *testing.T) {
	testwait.Bound(t)
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	t.Setenv("SLURM_JOB_ID", "77")
	t.Setenv("SLURM_STEP_ID", "3")
	last := testwait.Command(t, binary, "run", "--library", site.Library, "--report=all.txt", "--", "app", "wait")
	stdout, err := last.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("program says %q, %v", line, err)
	}
	_, stderr, state := pinwheel(t, "run --library "+site.Library+" --report=all.txt -- app report")
	if _, err := os.Stat("all.txt"); err == nil || state.ExitCode() != 8 || stderr != "" {
		t.Errorf("the first: %v, %q, report %v", state, stderr, err)
	}
	// A job of its own, of a launcher that is such a rank.
	_, stderr, state = pinwheel(t, "run --library "+site.Library+" --report -- mpirun app report")
	if state.ExitCode() != 8 || !strings.Contains(stderr, "2 of 2 ranks") {
		t.Errorf("mpirun: %v, %q", state, stderr)
	}
	if err := last.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = last.Wait() // the status says it all
	if got := last.ProcessState.ExitCode(); got != 40+int(unix.SIGTERM) {
		t.Errorf("the last: %v", last.ProcessState)
	}
	if text, err := os.ReadFile("all.txt"); err != nil || !strings.Contains(string(text), "2 of 2 ranks") {
		t.Errorf("%q, %v", text, err)
	}
	if left, _ := filepath.Glob("*"); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
}

func TestReportReadsFilesOfRanks(t *testing.T) {
	launchtest.New(t)
	name := filepath.Join(t.TempDir(), "0.json")
	if err := os.WriteFile(name, []byte(`{"rank":0,"size":1,"pid":4,"command":"./x"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, state := pinwheel(t, "report "+name); !state.Success() || stderr != "" || !strings.Contains(stdout, "@ Command  ./x") {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
	html := filepath.Join(t.TempDir(), "page.html")
	if stdout, stderr, state := pinwheel(t, "report --html "+html+" "+name); !state.Success() || stdout+stderr != "" {
		t.Errorf("page: %v, %q, %q", state, stdout, stderr)
	}
	if text, err := os.ReadFile(html); err != nil || !strings.HasPrefix(string(text), "<!DOCTYPE html>") || !strings.Contains(string(text), "x under Pinwheel") {
		t.Errorf("page: %.200q, %v", text, err)
	}
	for line, want := range map[string]struct {
		status int
		says   string
	}{
		"report --html " + t.TempDir() + " " + name: {2, "is a directory"},
		"report --html " + html + ".2 main.go":      {1, "main.go is not the report of a rank"},
		"report " + t.TempDir():                     {1, "is a directory"},
	} {
		_, stderr, state := pinwheel(t, line)
		if state.ExitCode() != want.status {
			t.Errorf("%s: %v", line, state)
		}
		oneLine(t, stderr, want.says)
	}
	if _, err := os.Stat(html + ".2"); err == nil {
		t.Error("a page of nothing was written")
	}
	_, stderr, state := pinwheel(t, "report main.go")
	if state.ExitCode() != 1 {
		t.Errorf("no report: %v", state)
	}
	oneLine(t, stderr, "main.go is not the report of a rank")
}

func TestKilledRunLeavesNothingToTheNext(t *testing.T) {
	testwait.Bound(t)
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	cmd := testwait.Command(t, binary, "run", "--library", site.Library, "--report", "--", "mpirun", "-n", "1", "app", "wait")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(stdout)
	if line, err := out.ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("program says %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { _, err := out.ReadByte(); ended <- err }() // the end of the file: nobody is left to write
	select {
	case <-ended:
	case <-time.After(testwait.Limit):
		t.Error("the job goes on without the command")
	}
	_ = cmd.Wait() // it was killed
	if left, _ := filepath.Glob("*"); len(left) != 1 {
		t.Errorf("left: %q", left)
	}
	pinwheel(t, "run --library "+site.Library+" --report=all.txt -- mpirun -n 2 app report")
	if left, _ := filepath.Glob("*"); !slices.Equal(left, []string{"all.txt"}) {
		t.Errorf("left: %q", left)
	}
}

func TestReportThatCantBeWrittenLeavesItsParts(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir(t.TempDir())
	full := outfiletest.Device(t, outfiletest.Full)
	_, stderr, state := pinwheel(t, "run --library "+site.Library+" --report="+full+" -- mpirun -n 2 app report")
	if state.ExitCode() != 8 {
		t.Errorf("%v", state)
	}
	oneLine(t, stderr, full+": no space left on device; the reports of the ranks are left for pinwheel report pinwheel-report-")
	pinwheel(t, "run --library "+site.Library+" --report=all.txt -- mpirun -n 2 app report") // which sweeps
	if parts, _ := filepath.Glob("pinwheel-report-*/*.json"); len(parts) != 2 {
		t.Errorf("parts: %q", parts)
	}
}

// Without a directory for the reports of the ranks there is no report, and the job runs all the same.
func TestJobRunsWithoutRoomForItsReport(t *testing.T) {
	site := launchtest.New(t)
	t.Chdir("/proc") // where not even root makes one
	t.Setenv("TMPDIR", "/nowhere")
	_, stderr, state := pinwheel(t, "run --library "+site.Library+" --report -- mpirun -n 2 app exit 5")
	if state.ExitCode() != 5 || !slices.Equal(site.Lines("loaded"), []string{"app"}) {
		t.Errorf("%v, loaded into %q", state, site.Lines("loaded"))
	}
	oneLine(t, stderr, "no report: neither the working directory nor /nowhere (TMPDIR) takes a directory: no such file")
}
