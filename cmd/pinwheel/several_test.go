package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// A log that grows while it is copied has a line, and is no failure, unless that is asked for.
func TestFileThatGrowsHasALine(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	log := filepath.Join(there, "log")
	write(t, log, contents(t, 16<<20))
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"), "--allow-write")
	f, err := os.OpenFile(log, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
				_, _ = f.WriteString("x") // the copy tells
			}
		}
	}()
	defer func() { close(end); <-ended; f.Close() }()
	for _, line := range []string{"get " + s.address + "log " + here, "put " + log + " " + s.address + "copy"} {
		testwait.Until(t, "it grows during a copy", func() bool {
			_, stderr, state := pinwheel(t, line)
			if !state.Success() {
				t.Fatalf("%s: %v, %q", line, state, stderr)
			}
			return strings.Contains(stderr, "log: grew while it was copied: the copy has what it had at the start\n")
		})
		testwait.Until(t, "it grows during a strict copy", func() bool {
			_, stderr, state := pinwheel(t, line+" --strict")
			return state.ExitCode() == 1 && strings.Contains(stderr, "log: changed each time it was copied, 3 times")
		})
	}
}

// A copy that is repeated says that nothing was left to do, and checksums find what size and time don't.
func TestRepeatedCopySaysWhatIsUnchanged(t *testing.T) {
	testwait.Bound(t)
	there, here := t.TempDir(), t.TempDir()
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(there, name), []byte(name))
	}
	s := startServer(t, there, "unix:"+filepath.Join(testwait.ShortDir(t), "s"), "--allow-write")
	for _, line := range []string{"get -r " + s.address + " " + here, "put -r " + here + " " + s.address + "back"} {
		for _, c := range []struct{ flags, says string }{
			{"", ": 2 files, "}, {"", "unchanged: 2\n"}, {" --verify none", "unchanged: 2\n"}, {" --verify crc32c", "unchanged: 2\n"},
		} {
			if stdout, stderr, state := pinwheel(t, line+c.flags); !state.Success() || !strings.Contains(stdout, c.says) {
				t.Errorf("%s%s: %v, %q, %q", line, c.flags, state, stdout, stderr)
			}
		}
	}
	changed := filepath.Join(here, "a")
	info, err := os.Stat(changed)
	if err = errors.Join(err, os.RemoveAll(filepath.Join(there, "back"))); err != nil {
		t.Fatal(err)
	}
	write(t, changed, []byte("x"))
	if err := os.Chtimes(changed, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ flags, says string }{{"", "unchanged: 2\n"}, {" --verify sha256", "unchanged: 1\n"}} {
		if stdout, _, _ := pinwheel(t, "get -r "+s.address+"a "+s.address+"b "+here+c.flags); strings.Contains(stdout, "unchanged") {
			t.Errorf("files that were named: %q", stdout)
		}
		write(t, changed, []byte("x"))
		if err := os.Chtimes(changed, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		if stdout, _, _ := pinwheel(t, "get -r "+s.address+" "+here+c.flags); !strings.Contains(stdout, c.says) {
			t.Errorf("%s: %q, want %q", c.flags, stdout, c.says)
		}
	}
	holds(t, changed, []byte("a"))
}
