package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBenchPrintsTablesOrOneObject(t *testing.T) {
	stdout, stderr, state := pinwheel(t, "bench vmmc --time 1ms --rounds 1")
	whole := strings.Contains(stdout, "\nautomatic update") && strings.Contains(stdout, "\nclaim")
	if !state.Success() || stderr != "" || !whole {
		t.Errorf("%v, %q\n%s", state, stderr, stdout)
	}
	stdout, stderr, state = pinwheel(t, "bench vmmc --time 1ms --rounds 1 --json")
	var got struct {
		Results []struct {
			Kind, By, Over string
			NS             float64
		}
		Claims []struct{ Times float64 }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || !state.Success() || stderr != "" {
		t.Fatalf("%v, %v, %q\n%s", err, state, stderr, stdout)
	}
	if len(got.Results) < 20 || len(got.Claims) < 5 || got.Results[0].Kind != "latency" || !(got.Results[0].NS > 0) {
		t.Errorf("%+v", got)
	}
}

func TestBenchOfFilesPrintsTablesOrOneObject(t *testing.T) {
	socketDir(t)
	stdout, stderr, state := pinwheel(t, "bench files --size 100K --files 20 --rounds 1")
	if !state.Success() || stderr != "" || !strings.Contains(stdout, "\npinwheel, shared memory") || !strings.Contains(stdout, "\nclaim") {
		t.Errorf("%v, %q\n%s", state, stderr, stdout)
	}
	stdout, stderr, state = pinwheel(t, "bench files --size 100K --files 20 --rounds 1 --json")
	var got struct {
		Results []struct {
			What, Way string
			CPU       struct{ Median float64 } `json:"cpu_s"`
		}
		Claims []struct{ Times float64 }
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || !state.Success() || stderr != "" {
		t.Fatalf("%v, %v, %q\n%s", err, state, stderr, stdout)
	}
	if len(got.Results) < 10 || len(got.Claims) != 3 || got.Results[0].What != "file" || !(got.Results[0].CPU.Median > 0) {
		t.Errorf("%+v", got)
	}
}

func TestBenchGoesOnWithoutAWayThatFails(t *testing.T) {
	socketDir(t)
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "rsync"), []byte("#!/bin/sh\necho no room >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", broken+":"+os.Getenv("PATH"))
	stdout, stderr, state := pinwheel(t, "bench files --size 100K --files 20 --rounds 1")
	if state.ExitCode() != 1 || strings.Count(stderr, "file by rsync: ") != 1 {
		t.Errorf("%v, %q", state, stderr)
	}
	if !strings.Contains(stdout, "\npinwheel, shared memory") || !strings.Contains(stdout, "not measured: tree by rsync") {
		t.Errorf("it prints\n%s", stdout)
	}
}

func TestBenchRefusesNonsense(t *testing.T) {
	_, stderr, state := pinwheel(t, "bench vmmc --rounds=-1")
	if oneLine(t, stderr, "--rounds"); state.ExitCode() != 2 {
		t.Error(state)
	}
}
