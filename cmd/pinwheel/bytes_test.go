package main

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/testwait"
	"pinwheel/internal/tools/command/argstest"
	"pinwheel/internal/tools/launch/launchtest"
)

func TestArgumentsKeepTheirBytes(t *testing.T) { argstest.KeepBytes(t, spec()) }

// name has every byte that begins no UTF-8.
var name = string(argstest.Bytes()[127:])

func TestProgramGetsItsArgumentsByteForByte(t *testing.T) {
	site := launchtest.New(t)
	for _, sub := range [][]string{{"run"}, {"record", "-o", filepath.Join(t.TempDir(), name) + "/"}} {
		for _, launcher := range [][]string{nil, {"mpirun", "-n", "1"}} {
			args := append(append(sub, "--library", site.Library, "--"), launcher...)
			cmd := testwait.Command(t, binary, append(args, "printf", "%s", argstest.Bytes())...)
			cmd.Stderr = new(bytes.Buffer) // printf uses no MPI
			if out, err := cmd.Output(); err != nil || string(out) != argstest.Bytes() {
				t.Errorf("%q: %q, %v", args, out, err)
			}
		}
	}
}

func TestFilesAreNamedByteForByte(t *testing.T) {
	site, dir := launchtest.New(t), t.TempDir()
	writeTrace(t, site, 0, 1)
	trace, page := filepath.Join(dir, "t"+name+".pwt"), filepath.Join(dir, "r"+name)
	for _, args := range [][]string{
		{"record", "--stats=s" + name, "-o", filepath.Join(dir, "d"+name) + "/", "--merged", trace, "--", "app", "record"},
		{"record", "-o" + filepath.Join(dir, "e"+name) + "/", "--", "app", "record"},
		{"run", "--report=" + page, "--", "app", "report"},
	} {
		cmd := testwait.Command(t, binary, append([]string{args[0], "--library", site.Library}, args[1:]...)...)
		if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() > 8 {
			t.Errorf("%q: %q, %v", args, out, err)
		}
		if args[0] != "record" || args[1] != "--stats=s"+name {
			continue
		}
		environ, err := os.ReadFile(site.Path("environ"))
		if !strings.Contains(string(environ), "\nPINWHEEL_STATS=s"+name+"\n") {
			t.Errorf("the program has %q, %v", environ, err)
		}
	}
	for _, path := range []string{
		trace, page, filepath.Join(dir, "d"+name, "0.pwt"), filepath.Join(dir, "e"+name, "app.pwt"),
	} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

// Names that differ in bytes that no text has are different files, at either end.
func TestFilesAreCopiedByteForByte(t *testing.T) {
	testwait.Bound(t)
	dir := t.TempDir()
	served, here := filepath.Join(dir, "d"+name), filepath.Join(dir, "h"+name)
	if err := errors.Join(os.Mkdir(served, 0o755), os.Mkdir(here, 0o755)); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(here, "\xfc"), []byte("one"))
	write(t, filepath.Join(here, "\xfd"), []byte("other"))
	socket := filepath.Join(testwait.ShortDir(t), "\xff")
	cmd := testwait.Command(t, binary, "serve", served, "--listen", "unix:"+socket, "--allow-write")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	testwait.Until(t, "the server listens", func() bool { _, err := os.Stat(socket); return err == nil })
	remote := "unix:" + socket + ":/"
	for _, args := range [][]string{
		{"put", filepath.Join(here, "\xfc"), remote + "\xfc" + name},
		{"put", filepath.Join(here, "\xfd"), remote + "\xfd" + name},
		{"get", remote + "\xfc" + name, filepath.Join(here, "got"+name)},
		{"get", "-r", remote, filepath.Join(here, "tree"+name)},
		{"put", "-r", filepath.Join(here, "tree"+name), remote + "again" + name},
		{"ls", "--json", remote + "again" + name},
	} {
		cmd := testwait.Command(t, binary, args...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %q, %v", args, out, err)
		}
		both := []string{
			base64.StdEncoding.EncodeToString([]byte("\xfc" + name)), base64.StdEncoding.EncodeToString([]byte("\xfd" + name)),
		}
		if args[0] == "ls" && (!strings.Contains(string(out), both[0]) || !strings.Contains(string(out), both[1])) {
			t.Errorf("ls: %q", out)
		}
	}
	holds(t, filepath.Join(here, "got"+name), []byte("one"))
	for _, d := range []string{filepath.Join(here, "tree"+name), filepath.Join(served, "again"+name)} {
		holds(t, filepath.Join(d, "\xfc"+name), []byte("one"))
		holds(t, filepath.Join(d, "\xfd"+name), []byte("other"))
	}
}
