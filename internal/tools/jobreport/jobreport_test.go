package jobreport

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"pinwheel/internal/report"
	"pinwheel/internal/testwait"
)

func writeRank(t *testing.T, name string, r report.Rank) {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestReportsOfRanksBecomeOne(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := NewDir()
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Dir(dir.Pattern())
	for rank, uses := range []uint64{30, 12} {
		writeRank(t, filepath.Join(at, []string{"0.json", "1.json"}[rank]),
			report.Rank{Rank: rank, Size: 2, PID: 1 + rank, Command: "./app", Uses: uses, Hits: uses})
	}
	files, err := dir.Files()
	if err != nil || len(files) != 2 {
		t.Fatalf("%q, %v", files, err)
	}
	var b strings.Builder
	if err := Write(&b, files); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "2 of 2 ranks") || !strings.Contains(b.String(), " 42 ") {
		t.Errorf("no sum of the ranks in\n%s", b.String())
	}
	if err := dir.Remove(); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob("*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestDirectoryOfAProcessThatWasKilledIsRemovedByTheNext(t *testing.T) {
	t.Chdir(t.TempDir())
	lives, err := NewDir()
	if err != nil {
		t.Fatal(err)
	}
	killed, err := NewDir()
	if err != nil {
		t.Fatal(err)
	}
	writeRank(t, filepath.Join(killed.path, "0.json"), report.Rank{Size: 1})
	writeRank(t, filepath.Join(killed.path, "1.json.77.partial"), report.Rank{Size: 1})
	killed.owner.Close() // as the kernel does
	for _, name := range []string{prefix + "12", prefix + "mine", prefix + "13/" + ownerName, prefix + "13/notes.txt"} {
		if err := os.MkdirAll(name, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		d, err := NewDir()
		if err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob("*"); len(left) != 4 { // the two, and what nobody knows
			t.Errorf("left: %q", left)
		}
		if !lives.owns() || !d.owns() {
			t.Error("a directory in use is gone")
		}
		if err := d.Remove(); err != nil {
			t.Error(err)
		}
	}
}

func TestDirectoriesAreNotSweptWhileTheyAreMade(t *testing.T) {
	testwait.Bound(t)
	parent := t.TempDir()
	var made sync.WaitGroup
	for range 4 {
		made.Go(func() {
			for range 20 {
				d, err := newDir(parent)
				if err != nil {
					t.Error(err)
					return
				}
				if !d.owns() {
					t.Error("the directory is gone")
				}
				if err := d.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	made.Wait()
	if left, _ := filepath.Glob(parent + "/*"); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestWhatIsNoReportIsOneLine(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, says string }{
		"empty": {"", "it is empty"}, "blank": {strings.Repeat(" ", 3<<20), "it is too large"},
		"cut":    {`{"rank":0,"size":1`, "it is cut off"},
		"binary": {"\x7fELF\x00\x00", "invalid character"}, "text": {"@ Pinwheel\n", "as PINWHEEL_STATS=FILE.json makes it"},
		"other": {"{}", "it says nothing"},
		"two":   {`{"size":1,"pid":3}{"size":1,"pid":4}`, "there is more in it"}, "list": {`[1,2]`, "cannot unmarshal"},
		"large": {`{"size":1,"pid":3,"command":"` + strings.Repeat("x", 2<<20) + `"}`, "it is too large"},
		"huge":  {`{"size":1e99,"pid":3}`, "cannot unmarshal"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := read(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+" is not the report of a rank, ") ||
			!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line that says %q", name, err, c.says)
		}
	}
	for path, says := range map[string]string{dir: "is a directory", "/dev/zero": "invalid character",
		"/dev/null": "it is empty", "/proc/self/mem": "input/output error"} {
		if _, err := read(path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestReportOfManyRanksTakesLittleMemory(t *testing.T) {
	testwait.SkipUnderRace(t, "it has one thread")
	name := filepath.Join(t.TempDir(), "0.json")
	writeRank(t, name,
		report.Rank{Size: 1, PID: 1, Environment: []string{"PINWHEEL_STATS=" + strings.Repeat("x", 500<<10)}})
	files := slices.Repeat([]string{name}, 200)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := Write(io.Discard, files); err == nil || strings.Count(err.Error(), "\n") != maxBad ||
		!strings.Contains(err.Error(), "196 more files") {
		t.Errorf("the same file 200 times: %v", err)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 64<<20 {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
}

func TestBadReportDoesNotKeepTheOthersBack(t *testing.T) {
	dir := t.TempDir()
	good, bad, empty := filepath.Join(dir, "good"), filepath.Join(dir, "bad"), filepath.Join(dir, "empty")
	writeRank(t, good, report.Rank{Rank: 0, Size: 1, PID: 1, Command: "./app"})
	for name, text := range map[string]string{bad: "{", empty: "{}"} {
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	err := Write(&b, []string{bad, good, empty, filepath.Join(dir, "missing")})
	if err == nil || strings.Count(err.Error(), "\n") != 2 ||
		!strings.Contains(err.Error(), "bad is not the report of a rank") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(b.String(), "./app") {
		t.Errorf("no report of the good one: %q", b.String())
	}
	if err := Write(&b, []string{bad}); !errors.Is(err, ErrNone) {
		t.Errorf("without any: %v", err)
	}
}
