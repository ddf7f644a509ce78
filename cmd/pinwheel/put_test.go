package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

func TestPutSaysWhatItHasCopied(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"), "--allow-write")
	for name, n := range map[string]int{"a": 1, "b": 100_000, "c": 3 << 20} {
		write(t, filepath.Join(here, name), contents(t, n))
	}
	var r copied
	stdout, stderr, state := pinwheel(t, "put -r --json --verify sha256 "+here+" "+s.address+"to")
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || !state.Success() || stderr != "" {
		t.Fatalf("%v, %q, %q", state, stdout, stderr)
	}
	if r.Files != 3 || r.Directories != 1 || r.Bytes != 3<<20+100_001 || r.Failed != 0 || r.Seconds <= 0 ||
		r.Transport != "shm" || r.Verify != "sha256" || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%s", stdout)
	}
	stdout, _, state = pinwheel(t, "put --json "+here+"/a "+s.address+"none/")
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || state.ExitCode() != 1 || r.Files != 0 {
		t.Errorf("to nowhere: %v, %q", state, stdout)
	}
}

// The disk of the server is full: one line, and what was there stays. What fits can be put then.
func TestPutToAFullDiskIsOneLineAndLeavesTheOldFile(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	if err := unix.Mount("tmpfs", there, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("mounting a tmpfs: %v (needs CAP_SYS_ADMIN)", err)
	}
	defer unix.Unmount(there, unix.MNT_DETACH) // it fails for nothing that is mounted
	write(t, filepath.Join(there, "old"), []byte("old"))
	write(t, filepath.Join(here, "old"), contents(t, 3<<20))
	tree := filepath.Join(here, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		write(t, filepath.Join(tree, fmt.Sprint(i)), contents(t, 50_000))
	}
	write(t, filepath.Join(here, "fits"), contents(t, 100_000))
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"), "--allow-write")
	hidden := func(name string) bool { return strings.HasPrefix(name, ".") }
	for _, args := range []string{"put", "put --resume", "put -r"} {
		source, to := filepath.Join(here, "old"), s.address+"old"
		if args == "put -r" {
			source, to = tree, s.address+"tree"
		}
		_, stderr, state := pinwheel(t, args+" "+source+" "+to)
		if oneLine(t, stderr, "no space left on device"); state.ExitCode() != 1 {
			t.Errorf("%s: %v", args, state)
		}
		holds(t, filepath.Join(there, "old"), []byte("old"))
		have := names(t, there)
		if left := slices.ContainsFunc(have, hidden); left != (args == "put --resume") {
			t.Errorf("%s: left %q", args, have)
		}
		for _, name := range have { // room for the next one
			if path := filepath.Join(there, name); hidden(name) {
				if err := unix.Unlink(path); err != nil {
					t.Error(err)
				}
			} else if name == "tree" {
				for _, f := range names(t, path) {
					holds(t, filepath.Join(path, f), contents(t, 50_000))
					if err := unix.Unlink(filepath.Join(path, f)); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	if _, stderr, state := pinwheel(t, "put "+here+"/fits "+s.address+"old"); !state.Success() {
		t.Errorf("%v, %q", state, stderr)
	}
	holds(t, filepath.Join(there, "old"), contents(t, 100_000))
	if have := names(t, there); slices.ContainsFunc(have, hidden) {
		t.Errorf("left %q", have)
	}
}
