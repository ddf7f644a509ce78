package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/launch/launchtest"
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

func TestReportReadsFilesOfRanks(t *testing.T) {
	launchtest.New(t)
	name := filepath.Join(t.TempDir(), "0.json")
	if err := os.WriteFile(name, []byte(`{"rank":0,"size":1,"pid":4,"command":"./x"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, state := pinwheel(t, "report "+name); !state.Success() || stderr != "" || !strings.Contains(stdout, "@ Command  ./x") {
		t.Errorf("%v, %q, %q", state, stdout, stderr)
	}
	_, stderr, state := pinwheel(t, "report main.go")
	if state.ExitCode() != 1 {
		t.Errorf("no report: %v", state)
	}
	oneLine(t, stderr, "main.go is not the report of a rank")
}
