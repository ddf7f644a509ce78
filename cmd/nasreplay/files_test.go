package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pinwheel/internal/outfile/outfiletest"
	"pinwheel/internal/testwait"
)

// writers are the command lines that write the file OUT, and how it begins.
var writers = []struct{ line, begins string }{
	{"merge --force --out OUT " + ftB4, "\x89PWT"},
	{"import --force --program x --out OUT CSV", "\x89PWT"},
	{"calibrate --provider sim --max-size 16K --rounds 1 --out OUT", "{"},
	{"plot --policy leave-pinned --out OUT " + ftB4, "<svg"},
	{"plot --kind savings --policy oracle --out OUT " + ftB4, "<svg"},
}

// fill puts a file's name and that of a CSV file into a line of writers.
func fill(t *testing.T, line, out string) []string {
	t.Helper()
	csv := filepath.Join(t.TempDir(), "rank0.csv")
	if err := os.WriteFile(csv, []byte("# mpitrace 2\n# rank 0 of 1 min_bytes 1\n# comm 0 0\n30,40,7,8,barrier,,0,0,-2,0,0,0,12\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.NewReplacer("OUT", out, "CSV", csv).Replace(line))
}

func TestEveryWriterFollowsLinksAndLeavesWhatIsNoFile(t *testing.T) {
	null, full := outfiletest.Device(t, outfiletest.Null), outfiletest.Device(t, outfiletest.Full)
	for _, w := range writers {
		dir := t.TempDir()
		there, missing := filepath.Join(dir, "there.svg"), filepath.Join(dir, "a", "b", "missing.svg")
		link, dangling, toNull := filepath.Join(dir, "link.svg"), filepath.Join(dir, "dangling.svg"), filepath.Join(dir, "null.svg")
		for path, to := range map[string]string{link: "there.svg", dangling: missing, toNull: null} {
			if err := os.Symlink(to, path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(there, []byte("old"), 0o640); err != nil {
			t.Fatal(err)
		}
		for _, out := range []string{link, dangling, toNull, null} {
			if _, stderr, status := nasreplay(t, fill(t, w.line, out)...); status != 0 {
				t.Errorf("%s, %s: status %d, %q", w.line, out, status, stderr)
			}
			if info, err := os.Lstat(out); err != nil || info.Mode().IsRegular() {
				t.Errorf("%s, %s: now it is %v, %v", w.line, out, info, err)
			}
		}
		for _, path := range []string{there, missing} {
			if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), w.begins) {
				t.Errorf("%s: %s begins with %.20q, %v", w.line, path, text, err)
			}
		}
		if info, err := os.Stat(there); err != nil || info.Mode() != 0o640 {
			t.Errorf("%s: mode %v, %v", w.line, info.Mode(), err)
		}
		for _, out := range []string{"-", "/dev/stdout"} {
			if stdout, stderr, status := nasreplay(t, fill(t, w.line, out)...); status != 0 || !strings.HasPrefix(stdout, w.begins) || strings.Contains(stdout, out+":") {
				t.Errorf("%s, %s: status %d, %.40q, %q", w.line, out, status, stdout, stderr)
			}
		}
		_, stderr, status := nasreplay(t, fill(t, w.line, full)...)
		if status != 1 {
			t.Errorf("%s, full device: status %d", w.line, status)
		}
		oneLine(t, stderr, full+": no space left on device")
		_, stderr, status = nasreplay(t, fill(t, w.line, filepath.Join(there, "below.svg"))...)
		if status != 1 {
			t.Errorf("%s, below a file: status %d", w.line, status)
		}
		oneLine(t, stderr, "below.svg: not a directory")
	}
}

func TestEveryWriterFeedsAFIFO(t *testing.T) {
	testwait.SkipUnderRace(t, singleThreaded)
	testwait.Bound(t)
	for _, w := range writers {
		fifo := filepath.Join(t.TempDir(), "fifo.svg")
		if err := unix.Mkfifo(fifo, 0o666); err != nil {
			t.Fatal(err)
		}
		reader := testwait.Command(t, "cat", fifo)
		var got bytes.Buffer
		reader.Stdout = &got
		if err := reader.Start(); err != nil {
			t.Fatal(err)
		}
		_, stderr, status := nasreplay(t, fill(t, w.line, fifo)...)
		_ = reader.Wait() // what it has read tells
		if status != 0 || !strings.HasPrefix(got.String(), w.begins) {
			t.Errorf("%s: status %d, %q, the reader got %.20q", w.line, status, stderr, got.String())
		}
		if info, err := os.Lstat(fifo); err != nil || info.Mode().Type() != fs.ModeNamedPipe {
			t.Errorf("%s: the FIFO is now %v, %v", w.line, info, err)
		}
	}
}

func TestEveryWriterLeavesTheOldFileOnAFullDisk(t *testing.T) {
	testwait.SkipUnderRace(t, singleThreaded)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"merge --force --out DIR/old " + ftB4, "merge --out DIR/new/file " + ftB4, "results --out DIR " + ftB4,
		"plot --out DIR/old --timeline recorded " + traces + "lu.B.4.pwt", "calibrate --provider sim --points --max-size 64M --rounds 1 --out DIR/old",
	} {
		dir := t.TempDir()
		cmd := testwait.Command(t, exe, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		cmd.Env = append(os.Environ(), runEnv+"=1")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		left := outfiletest.OnSmallDisk(t, cmd, dir)
		if cmd.ProcessState.ExitCode() != 1 || !slices.Equal(left, []string{"./old old"}) {
			t.Errorf("%s: %v, left %q", line, cmd.ProcessState, left)
		}
		oneLine(t, errs.String(), "no space left on device")
	}
}

func TestWhatCouldNotBePrintedIsAFailure(t *testing.T) {
	testwait.SkipUnderRace(t, singleThreaded)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, line := range []string{
		"info " + ftB4, "info --csv " + ftB4, "info --json " + ftB4, "compare --policy paper " + ftB4, "compare --csv --policy paper " + ftB4, "compare --json --policy paper " + ftB4,
		"plot --out OUT.svg --policy paper " + ftB4, "merge --out OUT " + ftB4, "import --out OUT CSV", "calibrate --provider sim --max-size 16K --rounds 1", "man", "completion zsh",
	} {
		cmd := testwait.Command(t, "/proc/self/exe", fill(t, line, filepath.Join(t.TempDir(), "out"))...)
		cmd.Env = append(os.Environ(), runEnv+"=1")
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		_ = cmd.Run() // the status says it all
		if cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: %v", line, cmd.ProcessState)
		}
		oneLine(t, errs.String(), "standard output: no space left on device")
	}
}
