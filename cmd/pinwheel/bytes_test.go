package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pinwheel/internal/command/argstest"
	"pinwheel/internal/launch/launchtest"
	"pinwheel/internal/testwait"
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
