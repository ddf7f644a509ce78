package main

import (
	"os"
	"path/filepath"
	"testing"

	"pinwheel/internal/testwait"
)

func TestSeveralFilesAreCopied(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	for _, name := range []string{"a.log", "b.log", "c"} {
		write(t, filepath.Join(there, name), []byte(name))
	}
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"), "--allow-write")
	to := filepath.Join(here, "to")
	_, stderr, state := pinwheel(t, "put "+there+"/a.log "+s.address+"new/")
	if state.ExitCode() != 1 {
		t.Errorf("%v", state)
	}
	oneLine(t, stderr, "new: no such file or directory at the server (--parents makes that directory)")
	for line, status := range map[string]int{
		"get -p " + s.address + "*.log " + s.address + "c " + to:           0,
		"put -p " + there + "/a.log " + there + "/c " + s.address + "new/": 0,
		"get " + s.address + "*.log " + s.address + "*.none " + here:       1,
		"get " + s.address + "c " + s.address + "a.log " + here + "/none":  1,
	} {
		stdout, stderr, state := pinwheel(t, line)
		if state.ExitCode() != status {
			t.Errorf("%s: %v, %q, %q", line, state, stdout, stderr)
		}
		if status != 0 {
			oneLine(t, stderr, "none: ")
		}
	}
	for path, want := range map[string]string{
		to + "/a.log": "a.log", to + "/b.log": "b.log", to + "/c": "c", there + "/new/a.log": "a.log", there + "/new/c": "c",
		here + "/a.log": "a.log", here + "/b.log": "b.log",
	} {
		holds(t, path, []byte(want))
	}
	if _, err := os.Stat(here + "/none"); err == nil {
		t.Error("a directory was made")
	}
}
